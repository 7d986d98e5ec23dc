import Foundation
import GatewayCore

/// Runs a closure as a transaction, on a connection's thread.
///
/// One round trip begins a transaction and sets its role and tenant for row-level security. Another one ends it.
struct PostgreSQLTransaction {
    /// Attempts of a transaction that conflicts with others.
    private static let maxAttempts = 5

    /// The roles that `store migrate` creates. The connecting user is a member of both.
    enum Role: String {
        /// Sees the rows of the tenant that `fcmgw.tenant` names.
        case tenant = "fcmgw_tenant"
        /// Sees all rows.
        case gateway = "fcmgw_gateway"
    }

    /// The outcome of a COMMIT whose answer was lost.
    private enum Outcome {
        case committed, aborted, unknown
    }

    let scope: SQLScope

    private var role: SQLValue { .string(self.isOfTenant ? Role.tenant.rawValue : Role.gateway.rawValue) }

    private var tenant: SQLValue {
        if case .tenant(let tenant) = self.scope { .string(tenant) } else { .string("") }
    }

    private var isOfTenant: Bool {
        if case .tenant = self.scope { true } else { false }
    }

    // MARK: Reading

    /// Runs a closure that only reads, in one snapshot.
    func read<T>(
        _ place: inout PostgreSQLPool.Place,
        timeout: Duration,
        _ body: (any SQLConnection) throws -> T
    ) throws -> T {
        // The server's timeout is shorter than the call's, so that the connection stays usable.
        let milliseconds = Int(timeout / .milliseconds(1)) * 9 / 10
        let (session, _) = try self.begin(
            &place,
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "SELECT set_config('role', $1, true), set_config('fcmgw.tenant', $2, true), "
                + "set_config('statement_timeout', $3, true)",
            [self.role, self.tenant, .string("\(milliseconds)")],
            timeout: timeout
        )
        do {
            let value = try body(PostgreSQLConnection(session: session))
            try session.execute("COMMIT")
            return value
        } catch {
            Self.abandon(&place, session, after: error)
            throw error
        }
    }

    // MARK: Writing

    /// Runs a closure until it has no conflict with another transaction, and commits it.
    ///
    /// - Throws: a `GatewayError` with the cause ``CommitOutcomeUnknown`` if it may have been committed; otherwise
    ///   nothing was written.
    func write<T>(
        _ place: inout PostgreSQLPool.Place,
        isolation: SQLIsolation,
        _ body: (any SQLConnection) throws -> T
    ) throws -> T {
        var attempt = 1
        while true {
            do {
                return try self.writeOnce(&place, isolation, body)
            } catch let error as PostgreSQLError {
                guard let reason = error.retryReason, attempt < Self.maxAttempts else { throw error }
                place.metrics?.retried(reason)
                // The thread belongs to the connection. A random pause keeps transactions from conflicting again.
                usleep(UInt32.random(in: 500...(2_000 << UInt32(attempt))))
                attempt += 1
            }
        }
    }

    private func writeOnce<T>(
        _ place: inout PostgreSQLPool.Place,
        _ isolation: SQLIsolation,
        _ body: (any SQLConnection) throws -> T
    ) throws -> T {
        let level = isolation == .serializable ? "SERIALIZABLE" : "READ COMMITTED"
        let (session, row) = try self.begin(
            &place,
            "BEGIN ISOLATION LEVEL \(level)",
            // A replica that stops between two statements must not block others from a row for long.
            "SELECT set_config('role', $1, true), set_config('fcmgw.tenant', $2, true), "
                + "set_config('idle_in_transaction_session_timeout', $3, true), CAST(pg_current_xact_id() AS TEXT)",
            [self.role, self.tenant, .string("\(Int(place.settings.callTimeout / .milliseconds(1)))")],
            timeout: place.settings.callTimeout
        )
        let value: T
        do {
            value = try body(PostgreSQLConnection(session: session))
        } catch {
            Self.abandon(&place, session, after: error)
            throw error
        }
        guard case .string(let number) = row.last else {
            throw PostgreSQLError(.unsupported, "the server returned no transaction number")
        }
        do {
            let answers = try session.answers([("COMMIT", [])])
            // PostgreSQL answers COMMIT with ROLLBACK if the closure has ignored a failed statement.
            guard answers.last?.last?.isCommand("COMMIT") == true else {
                throw PostgreSQLError(.unsupported, "the transaction had failed before its COMMIT")
            }
            return value
        } catch let error as PostgreSQLError where error.endsConnection {
            let life = session.life
            place.drop()
            switch Self.outcome(of: number, in: life, &place) {
            case .committed: return value
            case .aborted: throw error
            case .unknown:
                place.metrics?.lostOutcome()
                throw GatewayError(
                    .storeUnavailable,
                    "The store's answer was lost; the change may have been stored",
                    cause: CommitOutcomeUnknown()
                )
            }
        } catch {
            Self.abandon(&place, session, after: error)
            throw error
        }
    }

    // MARK: Steps

    /// Begins a transaction. Tries once more if the connection turns out to be closed, since nothing was done before.
    private func begin(
        _ place: inout PostgreSQLPool.Place,
        _ begin: String,
        _ settings: String,
        _ values: [SQLValue],
        timeout: Duration
    ) throws -> (PostgreSQLSession, [SQLValue]) {
        var isFirst = true
        while true {
            let session = try place.connect()
            session.timeout = timeout
            do {
                let answers = try session.answers([(begin, []), (settings, values)])
                let row = try answers.last?.first.map { try $0.values(0) } ?? []
                return (session, row)
            } catch let error as PostgreSQLError where isFirst && error.endsConnection && error.kind != .timedOut {
                place.drop()
                isFirst = false
            } catch {
                Self.abandon(&place, session, after: error)
                throw error
            }
        }
    }

    /// Rolls a failed transaction back, or closes its connection if that fails.
    private static func abandon(
        _ place: inout PostgreSQLPool.Place,
        _ session: PostgreSQLSession,
        after error: any Error
    ) {
        if let error = error as? PostgreSQLError, error.endsConnection {
            place.drop()
            return
        }
        do {
            try session.execute("ROLLBACK")
        } catch {
            place.drop()
        }
    }

    /// Asks the server for a transaction's status (PostgreSQL's documentation, 9.27.10) until it knows.
    ///
    /// After a fail-over or a recovery, another transaction may have the same number, so the answer counts only within
    /// one life.
    private static func outcome(
        of number: String,
        in life: String,
        _ place: inout PostgreSQLPool.Place
    ) -> Outcome {
        let end = Uptime.now + place.settings.outageTimeout
        while Uptime.now < end {
            do {
                let session = try place.connect()
                guard session.life == life else { return .unknown }
                var status: String?
                try session.query("SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))", [.string(number)]) { row in
                    status = try row.optionalText(0)
                    return true
                }
                switch status {
                case "committed": return .committed
                case "aborted": return .aborted
                // Still in progress: the server has not noticed that the connection is closed.
                case .some: break
                // The server no longer remembers a transaction that old.
                case nil: return .unknown
                }
            } catch let error as PostgreSQLError where error.endsConnection {
                place.drop()
            } catch {
                return .unknown
            }
            usleep(100_000)
        }
        return .unknown
    }
}
