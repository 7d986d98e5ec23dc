import GatewayCore

/// Why a call to PostgreSQL failed. Holds no password, and no value of a row or parameter.
struct PostgreSQLError: Error, Hashable, CustomStringConvertible {
    enum Kind: Hashable {
        /// The server refused, with an SQLSTATE (PostgreSQL's documentation, appendix A).
        case server(state: String)
        /// The connection broke, or could not be made.
        case disconnected
        /// The call's own deadline passed. Later data on the connection belongs to no call.
        case timedOut
        /// The server or a row holds something that the gateway does not understand.
        case unsupported
    }

    var kind: Kind
    var message: String

    init(_ kind: Kind, _ message: String) {
        (self.kind, self.message) = (kind, message)
    }

    /// Takes the server's message, except about data (class 22), where it would repeat the values.
    init(state: String, message: String) {
        self.init(.server(state: state), state.hasPrefix("22") ? "" : message)
    }

    /// Takes libpq's message on a failed connection, which has one line for each host with tabs before continuations,
    /// and joins it to one line.
    init(libraryMessage text: String) {
        let lines = text.replacing("\n\t", with: " ").split(separator: "\n")
        self.init(.disconnected, lines.joined(separator: "; ").replacing("\t", with: " "))
    }

    var description: String {
        switch self.kind {
        case .server(let state): self.message.isEmpty ? "SQLSTATE \(state)" : "SQLSTATE \(state): \(self.message)"
        case .disconnected, .timedOut, .unsupported: self.message
        }
    }

    private var state: String? {
        if case .server(let state) = self.kind { state } else { nil }
    }

    /// True if the connection can't be used any more: it broke, or its server is stopping or takes no writes.
    var endsConnection: Bool {
        switch self.kind {
        case .disconnected, .timedOut: true
        case .server(let state): state.hasPrefix("08") || Self.endingStates.contains(state)
        case .unsupported: false
        }
    }

    /// `admin_shutdown`, `crash_shutdown`, `cannot_connect_now`, `idle_in_transaction_session_timeout`, and what a
    /// server reports that is no longer the primary: `read_only_sql_transaction`. A standby also reports
    /// `feature_not_supported` for a serializable transaction, and `object_not_in_prerequisite_state` for a lock.
    private static let endingStates: Set<String> = ["57P01", "57P02", "57P03", "25P03", "25006", "0A000", "55000"]

    /// The conflict with another transaction after which the same one may succeed: `serialization_failure` or
    /// `deadlock_detected`.
    var retryReason: PostgreSQLMetrics.RetryReason? {
        switch self.state {
        case "40001": .serialization
        case "40P01": .deadlock
        default: nil
        }
    }

    /// True if another session holds the lock: `lock_not_available`.
    var isLocked: Bool { self.state == "55P03" }

    /// True if the values are at fault and the server is well: `data_exception`, `integrity_constraint_violation` and
    /// `program_limit_exceeded`, such as an entry that is too long for an index. A missing role is none of these,
    /// although its SQLSTATE is `invalid_parameter_value`.
    var isAboutData: Bool {
        guard let state = self.state, state != Self.missingRole else { return false }
        return ["22", "23", "54"].contains(state.prefix(2))
    }

    private static let missingRole = "22023"

    /// True if stored data can't be read: `data_corrupted` and `index_corrupted`.
    var isDamage: Bool { self.state == "XX001" || self.state == "XX002" }

    /// The meaning for an operator.
    fileprivate var explanation: String {
        switch self.kind {
        case .disconnected: return "The store can't be reached"
        case .timedOut: return "The store did not answer in time"
        case .unsupported: return "The store does not answer as it should"
        case .server(let state):
            if let explanation = Self.explanations[state] { return explanation }
            return Self.explanations[String(state.prefix(2))] ?? "The store does not answer as it should"
        }
    }

    /// Keys are an SQLSTATE, or its class: the first two characters.
    private static let explanations = [
        "08": "The store can't be reached",
        "0A000": "The store can't be written: its server is a standby",
        Self.missingRole: "The store's roles are missing; run fcm-gateway store migrate",
        "25006": "The store can't be written: its server only reads",
        "28": "The store refuses the gateway's user or password",
        "3D": "The store's database does not exist",
        "40": "The store is busy",
        "42501": "The store's user lacks rights; fcm-gateway store migrate grants them",
        "42P01": "The store's tables are missing; run fcm-gateway store migrate",
        "53": "The store has no resources left",
        "53100": "The store's disk is full",
        "55000": "The store can't be written: its server is a standby",
        "55P03": "The store is busy",
        "57": "The store's server is ending or starting",
        "57014": "The store did not answer in time",
        "58": "The store's disk reports an error",
        "XX001": "The store's data is damaged",
        "XX002": "The store's data is damaged",
    ]
}

extension GatewayError {
    /// Translates an error of PostgreSQL. An error of the gateway's own passes unchanged.
    init(translatingPostgreSQL error: any Error) {
        if let failure = (error as? DamagedFile)?.cause as? PostgreSQLError ?? error as? PostgreSQLError {
            self =
                failure.isAboutData
                ? GatewayError(.invalid, "The store can't hold a value of the request", cause: error)
                : GatewayError(.storeUnavailable, failure.explanation, cause: error)
        } else {
            self.init(translating: error)
        }
    }
}
