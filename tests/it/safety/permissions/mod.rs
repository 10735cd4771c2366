//! The permissions of `deploy/` on real servers: what each role may and may not do.

mod files;
mod matrix;
mod processes;
mod postgres_roles;
mod wire_client;

use tarsy_bus::permissions::NatsRole;

use crate::support::nats::NatsServer;

/// The password of every user here.
pub(crate) const PASSWORD: &str = "s3cret-word";

/// A server with the users of `deploy/nats/nats.conf`, and one without limits: `root`.
pub(crate) async fn guarded() -> NatsServer {
    let users = NatsRole::ALL.map(|role| {
        let permissions = files::deployed(&format!("nats/{}.conf", role.as_str()));
        format!(
            "{{ user: tarsy-{}, password: \"{PASSWORD}\", permissions: {{\n{permissions}}} }}\n",
            role.as_str()
        )
    });
    let root = format!("{{ user: root, password: \"{PASSWORD}\" }}");
    NatsServer::start_with(&format!(
        "authorization {{ users: [\n{}{root} ] }}",
        users.concat()
    ))
    .await
}
