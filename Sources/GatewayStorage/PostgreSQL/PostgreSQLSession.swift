import CLibPQ
import Foundation
import GatewayCore

/// A connection to a server. One thread at a time uses it.
///
/// Calls never block in libpq. They wait with `poll` until the call's own deadline, because a server's timeout does not
/// help when the network is cut. After an error that ends the connection, the session can only be released.
@safe
final class PostgreSQLSession {
    /// The statements of a batch that share a round trip and a deadline.
    private static let batchSize = 1_000
    /// The number of prepared statements after which all are deallocated: a few texts contain a caller's numbers.
    private static let maxPrepared = 512
    /// The number of statements after which buffered data goes to the server.
    private static let flushInterval = 64

    private let connection: OpaquePointer
    private var prepared: [String: String] = [:]
    /// A call's longest wait for the server's next answer.
    var timeout: Duration
    /// Identifies the period in which a transaction number names one transaction: the server's timeline, which a
    /// fail-over changes, and the reset time of its statistics, which recovery from a crash changes.
    private(set) var life = ""

    /// Connects and configures the session. Blocks for up to `connect_timeout` for each host.
    init(_ settings: PostgreSQLSettings) throws {
        self.timeout = settings.callTimeout
        if let problem = PostgreSQLSettings.libraryProblem { throw PostgreSQLError(.unsupported, problem) }
        let password = settings.password?.revealText() ?? ""
        // libpq copies the texts.
        guard
            let connection = unsafe fcmgw_pq_connect(
                settings.url,
                password,
                settings.sessionAttributes,
                settings.authentication
            )
        else {
            throw PostgreSQLError(.disconnected, "libpq has no memory for a connection")
        }
        unsafe self.connection = connection
        guard unsafe PQstatus(self.connection) == CONNECTION_OK else { throw self.refusal }
        guard unsafe PQserverVersion(self.connection) >= 130_000 else {
            throw GatewayError(.invalid, "The store's server is older than PostgreSQL 13")
        }
        try self.setUp(settings)
    }

    deinit {
        unsafe PQfinish(self.connection)
    }

    /// Why the connection failed, in libpq's words. They name hosts and users, never the password.
    private var refusal: PostgreSQLError {
        // libpq owns the text until the next call. It is copied at once.
        let text = unsafe PQerrorMessage(self.connection).map { unsafe String(cString: $0) } ?? ""
        return PostgreSQLError(libraryMessage: text)
    }

    /// Sets a search path without `$user`, which would follow the role during a transaction, and limits what a gateway
    /// that was cut off leaves behind: the server's own keepalive is two hours.
    private func setUp(_ settings: PostgreSQLSettings) throws {
        let idle = Int(settings.scanTimeout / .milliseconds(1))
        let lock = Int(settings.callTimeout / .milliseconds(1)) * 9 / 10
        try self.query(
            """
            SELECT set_config('search_path', quote_ident(coalesce(current_schema(), 'public')), false),
                set_config('client_min_messages', 'warning', false),
                set_config('idle_in_transaction_session_timeout', $1, false),
                set_config('lock_timeout', $2, false),
                set_config('tcp_keepalives_idle', '30', false),
                set_config('tcp_keepalives_interval', '10', false),
                set_config('tcp_keepalives_count', '3', false),
                concat_ws(
                    '/', CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
                    (SELECT stats_reset FROM pg_stat_bgwriter)
                )
            """,
            [.string("\(idle)"), .string("\(lock)")]
        ) { row in
            self.life = try row.text(7)
            return true
        }
    }

    /// True if another transaction can use the session: the server has not closed it, and no transaction is open.
    var isUsable: Bool {
        var awaited = pollfd(fd: unsafe PQsocket(self.connection), events: Int16(POLLIN), revents: 0)
        // POSIX fills the structure and keeps no pointer.
        if unsafe poll(&awaited, 1, 0) != 0, unsafe PQconsumeInput(self.connection) == 0 { return false }
        return unsafe PQstatus(self.connection) == CONNECTION_OK
            && PQtransactionStatus(self.connection) == PQTRANS_IDLE
    }

    /// Deallocates prepared statements when there are too many. Called between transactions.
    func tidy() throws {
        guard self.prepared.count > Self.maxPrepared else { return }
        try self.run(script: "DEALLOCATE ALL")
        self.prepared = [:]
    }

    // MARK: Statements

    /// Runs one statement, and passes each row to the closure as it arrives, until the closure returns false.
    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        let name = try self.prepare(sql)
        try self.send(name, values)
        // libpq refuses this while another statement is in progress. Then all rows arrive at once.
        _ = unsafe PQsetSingleRowMode(self.connection)
        try self.flush()
        var names: [String] = []
        var failure: (any Error)?
        var isEnough = false
        // All results must be read, also after a failure.
        while let result = try self.nextResult() {
            if failure == nil { failure = result.failure }
            guard failure == nil, !isEnough else { continue }
            if names.isEmpty { names = result.names }
            do {
                for row in 0..<result.rowCount where !isEnough {
                    isEnough = try !body(SQLRow(names: names, values: try result.values(row)))
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Runs a statement without rows. Returns the number of rows that it changed.
    @discardableResult
    func execute(_ sql: String, _ values: [SQLValue] = []) throws -> Int {
        try self.answers([(sql, values)]).joined().reduce(0) { $0 + $1.changes }
    }

    /// Runs a statement for each list of values, a thousand in a round trip. Returns the number of rows that all of
    /// them changed.
    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int {
        var changes = 0
        for start in stride(from: 0, to: values.count, by: Self.batchSize) {
            let batch = values[start..<min(start + Self.batchSize, values.count)]
            changes += try self.answers(batch.map { (sql, $0) }).joined().reduce(0) { $0 + $1.changes }
        }
        return changes
    }

    /// Runs statements in one round trip. Returns the results of each; throws the failure of the first that failed.
    ///
    /// A statement has one result. After a call in single-row mode, libpq returns the first statement's rows one by
    /// one. While the server accepts no input, its answers are read, so that neither side waits for the other.
    func answers(_ statements: [(sql: String, values: [SQLValue])]) throws -> [[PostgreSQLResult]] {
        let names = try statements.map { try self.prepare($0.sql) }
        guard unsafe PQenterPipelineMode(self.connection) == 1 else { throw self.lost }
        for (index, statement) in statements.enumerated() {
            try self.send(names[index], statement.values)
            if (index + 1).isMultiple(of: Self.flushInterval) { try self.flush() }
        }
        guard unsafe PQpipelineSync(self.connection) == 1 else { throw self.lost }
        try self.flush()
        var answers: [[PostgreSQLResult]] = []
        var failure: (any Error)?
        for _ in statements {
            var results: [PostgreSQLResult] = []
            while let result = try self.nextResult() {
                if failure == nil { failure = result.failure }
                results.append(result)
            }
            answers.append(results)
        }
        guard try self.nextResult()?.isPipelineEnd == true, unsafe PQexitPipelineMode(self.connection) == 1 else {
            throw self.lost
        }
        if let failure { throw failure }
        return answers
    }

    /// Runs the statements of a migration, separated by semicolons and without parameters.
    func run(script: String) throws {
        guard unsafe PQsendQuery(self.connection, script) == 1 else { throw self.lost }
        try self.finish()
    }

    /// Returns a statement's name at the server. The first use prepares it.
    private func prepare(_ sql: String) throws -> String {
        if let name = self.prepared[sql] { return name }
        let name = "s\(self.prepared.count + 1)"
        // The server infers the types of parameters from their use.
        guard unsafe PQsendPrepare(self.connection, name, sql, 0, nil) == 1 else { throw self.lost }
        try self.finish()
        self.prepared[sql] = name
        return name
    }

    /// Sends buffered data, and reads all results of a statement.
    private func finish() throws {
        try self.flush()
        var failure: (any Error)?
        while let result = try self.nextResult() {
            if failure == nil { failure = result.failure }
        }
        if let failure { throw failure }
    }

    /// Buffers a prepared statement with its values.
    ///
    /// Numbers are sent as text, which fits any type that the server inferred. Texts and bytes are sent unchanged.
    private func send(_ name: String, _ values: [SQLValue]) throws {
        var (bytes, lengths, formats): ([UInt8], [Int32], [Int32]) = ([], [], [])
        func append(_ content: some Collection<UInt8>, isText: Bool) {
            bytes += content
            if isText { bytes.append(0) }
            lengths.append(Int32(content.count))
            formats.append(isText ? 0 : 1)
        }
        for value in values {
            switch value {
            case .null:
                lengths.append(-1)
                formats.append(1)
            case .integer(let number): append("\(number)".utf8, isText: true)
            case .double(let number): append("\(number)".utf8, isText: true)
            case .string(let text): append(text.utf8, isText: false)
            case .blob(let content): append(content, isText: false)
            }
        }
        // Ensures an address when all values are empty.
        bytes.append(0)
        // libpq copies the arguments.
        let isSent = unsafe fcmgw_pq_send(self.connection, name, Int32(values.count), bytes, lengths, formats) == 1
        guard isSent else { throw self.lost }
    }

    // MARK: Waiting

    private var lost: PostgreSQLError { PostgreSQLError(.disconnected, "the connection broke") }

    /// Waits between statements until the server sends something, the descriptor has input, or the time is up. Returns
    /// true if a notification has arrived since the last call.
    func awaitNotification(orInput descriptor: Int32, for duration: Duration) throws -> Bool {
        let socket = unsafe PQsocket(self.connection)
        var awaited = [socket, descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        // Notifications that arrived with the results of statements are already buffered.
        guard unsafe fcmgw_pq_take_notifications(self.connection) == 0 else { return true }
        // POSIX fills the structures and keeps no pointer.
        _ = unsafe poll(&awaited, 2, Int32(duration / .milliseconds(1)))
        guard unsafe PQconsumeInput(self.connection) == 1 else { throw self.lost }
        return unsafe fcmgw_pq_take_notifications(self.connection) > 0
    }

    /// Sends buffered data, and reads the server's answers meanwhile.
    private func flush() throws {
        let deadline = Uptime.now + self.timeout
        while true {
            let state = unsafe PQflush(self.connection)
            if state == 0 { return }
            guard state > 0 else { throw self.lost }
            try self.wait(for: POLLIN | POLLOUT, until: deadline)
            guard unsafe PQconsumeInput(self.connection) == 1 else { throw self.lost }
        }
    }

    /// Returns the next result, or nil at the end of each statement's results.
    private func nextResult() throws -> PostgreSQLResult? {
        let deadline = Uptime.now + self.timeout
        while unsafe PQisBusy(self.connection) == 1 {
            try self.wait(for: POLLIN, until: deadline)
            guard unsafe PQconsumeInput(self.connection) == 1 else { throw self.lost }
        }
        guard let result = unsafe PQgetResult(self.connection) else { return nil }
        return unsafe PostgreSQLResult(result)
    }

    private func wait(for events: Int32, until deadline: Uptime) throws {
        while true {
            let left = Uptime.now.duration(to: deadline) / .milliseconds(1)
            guard left > 0 else { throw PostgreSQLError(.timedOut, "no answer within \(self.timeout)") }
            var awaited = pollfd(fd: unsafe PQsocket(self.connection), events: Int16(events), revents: 0)
            // POSIX fills the structure and keeps no pointer.
            let count = unsafe poll(&awaited, 1, Int32(min(left, 60_000).rounded(.up)))
            if count > 0 { return }
            guard count == 0 || errno == EINTR else { throw self.lost }
        }
    }
}

/// The connection that a transaction's closure receives.
struct PostgreSQLConnection: SQLConnection {
    let session: PostgreSQLSession

    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int {
        try self.session.executeMany(sql, values)
    }

    func insert(_ rows: [[SQLValue]], by insertion: SQLInsertion) throws -> Int {
        let split = rows.count - rows.count % SQLInsertion.manyRows
        let groups = stride(from: 0, to: split, by: SQLInsertion.manyRows)
            .map { rows[$0..<$0 + SQLInsertion.manyRows].flatMap(\.self) }
        return try self.executeMany(insertion.many, groups) + self.executeMany(insertion.one, Array(rows[split...]))
    }

    func queryMany(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Void) throws {
        for (place, answers) in try self.session.answers(values.map { (sql, $0) }).enumerated() {
            for answer in answers {
                for row in 0..<answer.rowCount {
                    try body(place, SQLRow(names: answer.names, values: try answer.values(row)))
                }
            }
        }
    }

    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        try self.session.query(sql, values, body)
    }

    func preferIndexes() throws {
        let settings = ["enable_seqscan", "enable_bitmapscan", "enable_sort"].map { "set_config('\($0)', 'off', true)" }
        try self.query("SELECT \(settings.joined(separator: ", "))", []) { _ in true }
    }
}
