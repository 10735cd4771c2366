// @generated automatically by Diesel CLI.

pub mod sql_types {
    #[derive(diesel::query_builder::QueryId, Clone, Debug, diesel::sql_types::SqlType)]
    #[diesel(postgres_type(name = "tsvector", schema = "pg_catalog"))]
    pub struct Tsvector;
}

diesel::table! {
    agent_executions (session_id, execution_id) {
        session_id -> Uuid,
        execution_id -> Uuid,
        started_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        checkpoint_id -> Nullable<Uuid>,
        stage_no -> Int4,
        agent_no -> Int4,
        checkpoint -> Int4,
        iteration -> Int4,
        event_count -> Int4,
        entry_count -> Int4,
        status -> Text,
        agent -> Text,
        strategy -> Text,
        backend -> Text,
        model -> Text,
        analysis -> Nullable<Text>,
        error -> Nullable<Text>,
        parent_execution_id -> Nullable<Uuid>,
        parent_call_id -> Nullable<Text>,
    }
}

// Four columns that only SQL statements name are left out: a table of more than 32 columns makes Diesel take
// three times as long to compile.
diesel::table! {
    alert_sessions (session_id) {
        session_id -> Uuid,
        created_at -> Timestamptz,
        deadline_at -> Timestamptz,
        lease_expires_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        settled_at -> Nullable<Timestamptz>,
        cancel_requested_at -> Nullable<Timestamptz>,
        lease_period -> Interval,
        lease_token -> Uuid,
        lease_owner -> Nullable<Uuid>,
        lease_epoch -> Int4,
        event_seq -> Int4,
        step -> Int4,
        attempts -> Int4,
        worker_name -> Text,
        status -> Text,
        stop_reason -> Nullable<Text>,
        dead_letter -> Nullable<Text>,
        fingerprint -> Nullable<Text>,
        chain -> Text,
        final_analysis -> Nullable<Text>,
        executive_summary -> Nullable<Text>,
        error -> Nullable<Text>,
        parent_id -> Nullable<Uuid>,
        joined_alerts -> Int4,
        traceparent -> Nullable<Text>,
        updates -> Int4,
        covered_updates -> Int4,
        mark -> Nullable<Text>,
        limited_route -> Nullable<Text>,
        review -> Nullable<Jsonb>,
    }
}

diesel::table! {
    alert_updates (session_id, update_no) {
        session_id -> Uuid,
        update_no -> Int4,
        alert_id -> Uuid,
        created_at -> Timestamptz,
        firing -> Array<Nullable<Uuid>>,
        resolved -> Array<Nullable<Uuid>>,
        severity -> Text,
        status -> Text,
        report -> Jsonb,
    }
}

diesel::table! {
    alerts (alert_id) {
        alert_id -> Uuid,
        received_at -> Timestamptz,
        settled_at -> Nullable<Timestamptz>,
        joined_session_id -> Nullable<Uuid>,
        last_delivery -> Uuid,
        stream_sequence -> Int8,
        deliveries -> Int4,
        place -> Text,
        body_sha256 -> Bytea,
        subject -> Text,
        headers -> Jsonb,
        dead_reason -> Nullable<Text>,
        dead_detail -> Nullable<Text>,
        fingerprint -> Nullable<Text>,
        alert_type -> Nullable<Text>,
        title -> Nullable<Text>,
        severity -> Nullable<Text>,
        source -> Nullable<Text>,
        body -> Nullable<Text>,
        raw -> Nullable<Bytea>,
        delivered_at -> Timestamptz,
        swept_at -> Nullable<Timestamptz>,
        attempts -> Int4,
        members -> Nullable<Array<Nullable<Uuid>>>,
        refs -> Nullable<Jsonb>,
    }
}

diesel::table! {
    approval_freezes (freeze_id) {
        freeze_id -> Uuid,
        at -> Timestamptz,
        until -> Nullable<Timestamptz>,
        ended_at -> Nullable<Timestamptz>,
        is_end -> Bool,
        person -> Text,
        reason -> Nullable<Text>,
        ended_by -> Nullable<Text>,
    }
}

diesel::table! {
    approval_votes (vote_id) {
        vote_id -> Uuid,
        session_id -> Uuid,
        at -> Timestamptz,
        event_seq -> Int4,
        seen_updates -> Int4,
        person -> Text,
        account -> Text,
        groups -> Array<Nullable<Text>>,
        channel -> Text,
        address -> Nullable<Text>,
        verdict -> Text,
        comment -> Nullable<Text>,
        seen_sha256 -> Bytea,
        refused -> Nullable<Text>,
    }
}

diesel::table! {
    approvals (session_id, event_seq) {
        session_id -> Uuid,
        execution_id -> Uuid,
        asked_at -> Timestamptz,
        expires_at -> Timestamptz,
        outcome_at -> Nullable<Timestamptz>,
        closed_at -> Nullable<Timestamptz>,
        valid_for -> Interval,
        event_seq -> Int4,
        quorum -> Int2,
        votes -> Int2,
        other_person -> Bool,
        call_id -> Text,
        tool -> Text,
        policy -> Text,
        arguments -> Text,
        call_sha256 -> Bytea,
        schema_sha256 -> Bytea,
        why -> Text,
        evidence -> Array<Nullable<Int4>>,
        origins -> Jsonb,
        on_resolved -> Text,
        channels -> Array<Nullable<Text>>,
        decided_by -> Array<Nullable<Text>>,
        outcome -> Nullable<Text>,
        channel -> Nullable<Text>,
        comment -> Nullable<Text>,
        closed_as -> Nullable<Text>,
    }
}

diesel::table! {
    entries (session_id, execution_id, entry_no) {
        session_id -> Uuid,
        execution_id -> Uuid,
        created_at -> Timestamptz,
        entry_no -> Int4,
        checkpoint -> Int4,
        iteration -> Int4,
        kind -> Text,
        role -> Nullable<Text>,
        content -> Nullable<Text>,
        tool_call_id -> Nullable<Text>,
        tool_name -> Nullable<Text>,
        body -> Jsonb,
        provider_data -> Nullable<Bytea>,
        event_seq -> Nullable<Int4>,
    }
}

diesel::table! {
    event_key (only_row) {
        only_row -> Bool,
        key -> Bytea,
    }
}

diesel::table! {
    llm_interactions (session_id, execution_id, checkpoint, call_no) {
        session_id -> Uuid,
        execution_id -> Uuid,
        created_at -> Timestamptz,
        checkpoint -> Int4,
        call_no -> Int4,
        iteration -> Int4,
        entries_upto -> Int4,
        duration_ms -> Int8,
        input_tokens -> Nullable<Int8>,
        cached_tokens -> Nullable<Int8>,
        output_tokens -> Nullable<Int8>,
        thinking_tokens -> Nullable<Int8>,
        purpose -> Text,
        provider -> Text,
        backend -> Text,
        model -> Text,
        error -> Nullable<Text>,
        response -> Nullable<Jsonb>,
    }
}

diesel::table! {
    notifications (session_id, route, moment) {
        session_id -> Uuid,
        route -> Text,
        moment -> Text,
        created_at -> Timestamptz,
        due_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
        lease -> Nullable<Uuid>,
        attempts -> Int4,
        in_doubt -> Bool,
        outcome -> Nullable<Text>,
        reason -> Nullable<Text>,
        receipt -> Nullable<Text>,
    }
}

diesel::table! {
    route_turns (route) {
        route -> Text,
        turn -> Int8,
    }
}

diesel::table! {
    schema_compatibility (only_row) {
        only_row -> Bool,
        oldest_program -> Text,
    }
}

diesel::table! {
    session_plans (session_id) {
        session_id -> Uuid,
        format_version -> Int4,
        plan -> Jsonb,
    }
}

diesel::table! {
    session_recoveries (session_id, recovery_no) {
        session_id -> Uuid,
        recovery_id -> Uuid,
        created_at -> Timestamptz,
        recovery_no -> Int4,
        kept_upto -> Nullable<Int4>,
        restored -> Int4,
        calls -> Jsonb,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Tsvector;

    session_words (session_id) {
        session_id -> Uuid,
        words -> Tsvector,
        has_end -> Bool,
    }
}

diesel::table! {
    skill_texts (sha256) {
        sha256 -> Bytea,
        used_at -> Timestamptz,
        text -> Text,
    }
}

diesel::table! {
    stages (session_id, stage_no) {
        session_id -> Uuid,
        stage_no -> Int4,
        started_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        name -> Text,
        success_policy -> Text,
        status -> Text,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    store_probes (slot) {
        slot -> Int2,
        written_at -> Timestamptz,
    }
}

diesel::table! {
    timeline_events (session_id, session_seq) {
        session_id -> Uuid,
        execution_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        session_seq -> Int4,
        sequence_number -> Nullable<Int4>,
        lease_epoch -> Int4,
        stage_no -> Nullable<Int4>,
        iteration -> Nullable<Int4>,
        attempt -> Nullable<Int4>,
        event_type -> Text,
        status -> Text,
        content -> Text,
        metadata -> Nullable<Jsonb>,
    }
}

diesel::table! {
    tool_interactions (session_id, execution_id, checkpoint, call_no) {
        session_id -> Uuid,
        execution_id -> Uuid,
        created_at -> Timestamptz,
        checkpoint -> Int4,
        call_no -> Int4,
        iteration -> Int4,
        duration_ms -> Int8,
        read_only -> Bool,
        state -> Text,
        call_id -> Text,
        tool -> Text,
        arguments -> Text,
        result -> Nullable<Text>,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    verdicts (verdict_id) {
        verdict_id -> Uuid,
        session_id -> Uuid,
        created_at -> Timestamptz,
        person -> Text,
        account -> Text,
        channel -> Text,
        verdict -> Text,
        cause -> Nullable<Text>,
        action -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    agent_executions,
    alert_sessions,
    alert_updates,
    alerts,
    approval_freezes,
    approval_votes,
    approvals,
    entries,
    event_key,
    llm_interactions,
    notifications,
    route_turns,
    schema_compatibility,
    session_plans,
    session_recoveries,
    session_words,
    skill_texts,
    stages,
    store_probes,
    timeline_events,
    tool_interactions,
    verdicts,
);
