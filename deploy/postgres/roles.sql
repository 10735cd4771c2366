-- Roles of least privilege for the database of tarsy. Run it once in that database, as a superuser or as a role that
-- may create roles, before the first `tarsy migrate`:
--
--     psql --single-transaction --file roles.sql postgres://admin@host/tarsy
--     psql postgres://admin@host/tarsy -c '\password tarsy_owner'    # likewise tarsy_worker, tarsy_reader
--
-- tarsy_owner runs `tarsy migrate` and owns the tables. tarsy_worker runs workers, and the commands that change
-- sessions. tarsy_reader runs `tarsy web` and the commands that only show: sessions list, sessions show,
-- watch.

CREATE ROLE tarsy_owner LOGIN;
CREATE ROLE tarsy_worker LOGIN;
CREATE ROLE tarsy_reader LOGIN;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO tarsy_owner;
GRANT USAGE ON SCHEMA public TO tarsy_worker, tarsy_reader;

-- Tables of later migrations get the same rights when tarsy_owner creates them.
ALTER DEFAULT PRIVILEGES FOR ROLE tarsy_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tarsy_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE tarsy_owner IN SCHEMA public
    GRANT SELECT ON TABLES TO tarsy_reader;
