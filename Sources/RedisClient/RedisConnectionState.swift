/// Decides how one connection to Redis introduces itself, to which command each reply belongs, and when the connection
/// ends. It ends when its input can't be trusted any more.
///
/// Pure: it receives events and returns actions. Replies arrive in the order of the commands. The connection would
/// mistake a late reply to an abandoned command for the reply to the next command. So a call that times out closes the
/// connection, and so does a reply without a call.
struct RedisConnectionState<Call> {
    /// The client's identity, and its destination.
    struct Introduction: Sendable {
        var user: String?
        var password: String?
        /// The name in the server's list of clients.
        var name: String
        var database = 0
        /// The service for which a Sentinel is asked; nil for the server itself.
        var service: String?
    }

    enum Action {
        case nothing
        case write(RedisCommand)
        /// Commands may be sent.
        case ready
        /// The Sentinel has named the server. The connection has done its work.
        case discovered(RedisLocation.Endpoint)
        case deliver(Call, RESPValue)
        /// The reply belongs to a call, but the connection can't be used any more.
        case deliverAndClose(Call, RESPValue, RedisClientError)
        case close(RedisClientError)
    }

    private enum Step {
        /// `HELLO 3` with user, password and name, for Redis 6 and later.
        case hello
        /// For servers without `HELLO`.
        case authenticate
        case setName
        case select
        case discover
    }

    private enum Phase {
        /// The connection waits for a step's reply. Next: `ready`, `closed`.
        case introducing(Step)
        /// Next: `closed`.
        case ready
        case closed
    }

    private let introduction: Introduction
    private let maxCalls: Int
    private var phase = Phase.closed
    /// Calls that wait for replies. The oldest is at `firstCall`.
    private var calls: [Call] = []
    private var firstCall = 0

    init(_ introduction: Introduction, maxCalls: Int) {
        self.introduction = introduction
        self.maxCalls = maxCalls
    }

    /// The call to which the next reply belongs.
    var oldestCall: Call? { self.firstCall < self.calls.count ? self.calls[self.firstCall] : nil }

    /// The transport is open. Returns the first command.
    mutating func opened() -> RedisCommand {
        let step: Step = self.introduction.service == nil ? .hello : .discover
        self.phase = .introducing(step)
        return self.command(of: step)
    }

    /// Records a call whose command is about to be written. Returns false if it can't be sent.
    mutating func submit(_ call: Call) -> Bool {
        guard case .ready = self.phase, self.calls.count - self.firstCall < self.maxCalls else { return false }
        self.calls.append(call)
        return true
    }

    /// Closes the state. Returns the calls without replies.
    mutating func close() -> [Call] {
        defer { (self.phase, self.calls, self.firstCall) = (.closed, [], 0) }
        return Array(self.calls[self.firstCall...])
    }

    mutating func received(_ value: RESPValue) -> Action {
        // The client has no subscriptions. A push, such as a message to invalidate cached keys, is no reply.
        if case .push = value { return .nothing }
        switch self.phase {
        case .closed:
            return .nothing
        case .introducing(let step):
            return self.introduced(step, value)
        case .ready:
            guard let call = self.removeOldestCall() else {
                return .close(RedisClientError(.invalidReply, "The server sent a reply without a request"))
            }
            guard let error = self.end(after: value) else { return .deliver(call, value) }
            return .deliverAndClose(call, value, error)
        }
    }

    private mutating func removeOldestCall() -> Call? {
        guard self.firstCall < self.calls.count else { return nil }
        let call = self.calls[self.firstCall]
        self.firstCall += 1
        if self.firstCall == self.calls.count {
            self.calls.removeAll(keepingCapacity: true)
            self.firstCall = 0
        } else if self.firstCall >= 1_024 {
            self.calls.removeFirst(self.firstCall)
            self.firstCall = 0
        }
        return call
    }

    /// Returns the reason to close the connection if the reply is an error that shows that the server can't be used.
    /// Returns nil for all other replies.
    private func end(after value: RESPValue) -> RedisClientError? {
        guard case .error = value else { return nil }
        return switch value.errorCode {
        case "READONLY":
            RedisClientError(.unusableServer, "The server has become a replica")
        case "MOVED", "ASK", "CLUSTERDOWN":
            Self.isCluster
        case "LOADING", "MASTERDOWN":
            RedisClientError(.unusableServer, "The server is not ready: \(value.errorCode)")
        case "NOAUTH", "WRONGPASS":
            self.authenticationFailure
        default:
            nil
        }
    }

    private var authenticationFailure: RedisClientError {
        RedisClientError(
            .authenticationFailed,
            self.introduction.password == nil
                ? "The server asks for a password, and none is configured"
                : "The server refuses the user or the password"
        )
    }

    private static var isCluster: RedisClientError {
        RedisClientError(
            .clusterNode,
            "The server is a node of a Redis Cluster, which is not supported; name a server that is not in cluster mode"
        )
    }

    // MARK: Introducing itself

    private func command(of step: Step) -> RedisCommand {
        let introduction = self.introduction
        switch step {
        case .hello:
            var words = ["HELLO", "3"]
            if let password = introduction.password { words += ["AUTH", introduction.user ?? "default", password] }
            return RedisCommand(words + ["SETNAME", introduction.name])
        case .authenticate:
            let password = introduction.password ?? ""
            return RedisCommand(["AUTH"] + (introduction.user.map { [$0] } ?? []) + [password])
        case .setName:
            return RedisCommand(["CLIENT", "SETNAME", introduction.name])
        case .select:
            return RedisCommand(["SELECT", "\(introduction.database)"])
        case .discover:
            return RedisCommand(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", introduction.service ?? ""])
        }
    }

    private mutating func introduced(_ step: Step, _ value: RESPValue) -> Action {
        if case .error(let text) = value {
            switch (step, value.errorCode) {
            // Servers before 6 lack this command, and a proxy may support only version 2.
            case (.hello, "ERR"), (.hello, "NOPROTO"):
                return self.go(to: self.introduction.password == nil ? .setName : .authenticate)
            // The name is only for operators.
            case (.setName, _):
                return self.named()
            case (_, "NOAUTH"), (_, "WRONGPASS"), (.authenticate, _):
                return .close(self.authenticationFailure)
            case (_, "MOVED"), (_, "CLUSTERDOWN"):
                return .close(Self.isCluster)
            default:
                return .close(RedisClientError(.unusableServer, "The server refuses: \(text.prefix(120))"))
            }
        }
        switch step {
        case .hello:
            switch value["mode"]?.text {
            case "cluster":
                return .close(Self.isCluster)
            case "sentinel":
                return .close(
                    RedisClientError(.unusableServer, "The server is a Sentinel; name it by redis+sentinel://")
                )
            default:
                break
            }
            if let role = value["role"]?.text, role != "master" {
                return .close(RedisClientError(.unusableServer, "The server is a replica"))
            }
            return self.named()
        case .authenticate:
            return self.go(to: .setName)
        case .setName:
            return self.named()
        case .select:
            return self.becomeReady()
        case .discover:
            guard case .array(let parts) = value, parts.count == 2, let host = parts[0].text, !host.isEmpty,
                let port = parts[1].text.flatMap({ Int($0) }), (1...65_535).contains(port)
            else {
                return .close(RedisClientError(.unavailable, "The Sentinel does not know the service"))
            }
            return .discovered(RedisLocation.Endpoint(host: host, port: port))
        }
    }

    private mutating func named() -> Action {
        self.introduction.database == 0 ? self.becomeReady() : self.go(to: .select)
    }

    private mutating func becomeReady() -> Action {
        self.phase = .ready
        return .ready
    }

    private mutating func go(to step: Step) -> Action {
        self.phase = .introducing(step)
        return .write(self.command(of: step))
    }
}
