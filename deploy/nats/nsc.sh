#!/bin/sh
# Makes a user for each role of tarsy in an account of NATS with JWTs: nsc.sh ACCOUNT
# Then `nsc generate creds --account ACCOUNT --name tarsy-worker` prints the file for NATS_CREDS_FILE.
# shellcheck disable=SC2016  # the names of subjects begin with a dollar sign
set -eu
account=${1:?the name of the account}

nsc add user --account "$account" tarsy-producer \
  --allow-pub '$SYS.REQ.USER.INFO,tarsy.alerts.>' \
  --allow-sub '_INBOX.>,_INBOX_doctor.>,_INBOX_submit.>'

nsc add user --account "$account" tarsy-receiver \
  --allow-pub '$SYS.REQ.USER.INFO,tarsy.alerts.>' \
  --allow-sub '_INBOX_doctor.>,_INBOX_receive.>'

nsc add user --account "$account" tarsy-worker \
  --allow-pub '$JS.ACK.TARSY_ALERTS.>,$JS.ACK.TARSY_PEOPLE.>,$JS.API.CONSUMER.INFO.TARSY_ALERTS.*,$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_ALERTS.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_PEOPLE.*,$JS.API.STREAM.INFO.TARSY_ALERTS,$JS.API.STREAM.INFO.TARSY_CONTROL,$JS.API.STREAM.INFO.TARSY_DEAD_LETTERS,$JS.API.STREAM.INFO.TARSY_PEOPLE,$JS.API.STREAM.INFO.TARSY_TIMELINE,$JS.API.STREAM.MSG.GET.TARSY_ALERTS,$JS.API.STREAM.MSG.GET.TARSY_CONTROL,$JS.API.STREAM.MSG.GET.TARSY_TIMELINE,$SYS.REQ.USER.INFO,_INBOX_doctor.>,_INBOX_worker.>,tarsy.alerts.>,tarsy.dead.*.*,tarsy.live.*,tarsy.questions.>,tarsy.systems.*,tarsy.timeline.*,tarsy.workers.*' \
  --allow-sub '_INBOX_doctor.>,_INBOX_worker.>,tarsy.control.*,tarsy.workers.*'

nsc add user --account "$account" tarsy-watcher \
  --allow-pub '$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.*.tarsy.timeline.*,$JS.API.CONSUMER.INFO.TARSY_ALERTS.*,$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_TIMELINE.*,$JS.API.STREAM.INFO.TARSY_ALERTS,$JS.API.STREAM.INFO.TARSY_CONTROL,$JS.API.STREAM.INFO.TARSY_DEAD_LETTERS,$JS.API.STREAM.INFO.TARSY_PEOPLE,$JS.API.STREAM.INFO.TARSY_TIMELINE,$JS.API.STREAM.MSG.GET.TARSY_TIMELINE,$SYS.REQ.USER.INFO,_INBOX_doctor.>' \
  --allow-sub '_INBOX_doctor.>,_INBOX_watch.>,_INBOX_web.>,tarsy.live.*,tarsy.workers.*'

nsc add user --account "$account" tarsy-web \
  --allow-pub '$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.*.tarsy.timeline.*,$JS.API.CONSUMER.INFO.TARSY_ALERTS.*,$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_TIMELINE.*,$JS.API.STREAM.INFO.TARSY_ALERTS,$JS.API.STREAM.INFO.TARSY_CONTROL,$JS.API.STREAM.INFO.TARSY_DEAD_LETTERS,$JS.API.STREAM.INFO.TARSY_PEOPLE,$JS.API.STREAM.INFO.TARSY_TIMELINE,$JS.API.STREAM.MSG.GET.TARSY_TIMELINE,$SYS.REQ.USER.INFO,_INBOX_doctor.>,tarsy.alerts.critical.web,tarsy.alerts.high.web,tarsy.alerts.low.web,tarsy.alerts.normal.web,tarsy.control.*,tarsy.decisions.web.*,tarsy.questions.>,tarsy.verdicts.web.*' \
  --allow-sub '_INBOX_doctor.>,_INBOX_web.>,tarsy.live.*,tarsy.systems.*,tarsy.workers.*'

nsc add user --account "$account" tarsy-administrator \
  --allow-pub '$JS.API.CONSUMER.CREATE.TARSY_ALERTS.>,$JS.API.CONSUMER.CREATE.TARSY_DEAD_LETTERS.*.tarsy.dead.>,$JS.API.CONSUMER.CREATE.TARSY_PEOPLE.>,$JS.API.CONSUMER.CREATE.TARSY_TIMELINE.*.tarsy.timeline.*,$JS.API.CONSUMER.DURABLE.CREATE.TARSY_ALERTS.*,$JS.API.CONSUMER.DURABLE.CREATE.TARSY_PEOPLE.*,$JS.API.CONSUMER.INFO.TARSY_ALERTS.*,$JS.API.CONSUMER.INFO.TARSY_PEOPLE.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_DEAD_LETTERS.*,$JS.API.CONSUMER.MSG.NEXT.TARSY_TIMELINE.*,$JS.API.STREAM.CREATE.TARSY_ALERTS,$JS.API.STREAM.CREATE.TARSY_CONTROL,$JS.API.STREAM.CREATE.TARSY_DEAD_LETTERS,$JS.API.STREAM.CREATE.TARSY_PEOPLE,$JS.API.STREAM.CREATE.TARSY_TIMELINE,$JS.API.STREAM.INFO.TARSY_ALERTS,$JS.API.STREAM.INFO.TARSY_CONTROL,$JS.API.STREAM.INFO.TARSY_DEAD_LETTERS,$JS.API.STREAM.INFO.TARSY_PEOPLE,$JS.API.STREAM.INFO.TARSY_TIMELINE,$JS.API.STREAM.MSG.DELETE.TARSY_DEAD_LETTERS,$JS.API.STREAM.MSG.GET.TARSY_ALERTS,$JS.API.STREAM.MSG.GET.TARSY_CONTROL,$JS.API.STREAM.MSG.GET.TARSY_DEAD_LETTERS,$JS.API.STREAM.MSG.GET.TARSY_TIMELINE,$JS.API.STREAM.UPDATE.TARSY_ALERTS,$JS.API.STREAM.UPDATE.TARSY_CONTROL,$JS.API.STREAM.UPDATE.TARSY_DEAD_LETTERS,$JS.API.STREAM.UPDATE.TARSY_PEOPLE,$JS.API.STREAM.UPDATE.TARSY_TIMELINE,$SYS.REQ.USER.INFO,_INBOX_doctor.>,tarsy.alerts.>,tarsy.control.*,tarsy.questions.>' \
  --allow-sub '_INBOX_ask.>,_INBOX_cancel.>,_INBOX_dead-letters.>,_INBOX_doctor.>,_INBOX_drill.>,_INBOX_migrate.>,_INBOX_rerun.>,_INBOX_submit.>,_INBOX_watch.>,tarsy.control.*,tarsy.live.*,tarsy.workers.*'

nsc add user --account "$account" tarsy-slack \
  --allow-pub '$SYS.REQ.USER.INFO,tarsy.decisions.slack.*,tarsy.questions.high.slack,tarsy.verdicts.slack.*' \
  --allow-sub '_INBOX_doctor.>,_INBOX_slack.>'

nsc add user --account "$account" tarsy-decider \
  --allow-pub '$SYS.REQ.USER.INFO,tarsy.decisions.cli.ana.*,tarsy.verdicts.cli.ana.*' \
  --allow-sub '_INBOX_approvals.>,_INBOX_doctor.>'
