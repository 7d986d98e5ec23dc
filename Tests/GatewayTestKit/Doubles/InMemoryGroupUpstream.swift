package import FCMModel
package import GatewayCore
import Synchronization

/// Device groups in memory by FCM's rules: new keys in each answer, at most 20 members, deletion with the last.
package final class InMemoryGroupUpstream: GroupUpstream {
    fileprivate struct Group {
        var number: Int
        var members: [String]
    }

    fileprivate struct State {
        var groups: [String: Group] = [:]
        var invalidTokens: Set<String> = []
        var lastNumber = 0
        var lastKey = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func members(ofGroup name: String) -> [String]? {
        self.state.withLock { $0.groups[name]?.members }
    }

    package var groupNames: [String] { self.state.withLock { $0.groups.keys.sorted() } }

    /// Sets the tokens that every group refuses.
    package func refuse(tokens: Set<String>) {
        self.state.withLock { $0.invalidTokens = tokens }
    }

    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: Uptime,
        origin: RequestOrigin
    ) async -> GroupResult {
        self.state.withLock { state in
            do throws(GroupFailure) {
                return GroupResult(.success(try state.perform(request)), upstreamCode: "200")
            } catch {
                return GroupResult(.failure(error), upstreamCode: "400")
            }
        }
    }
}

extension InMemoryGroupUpstream.State {
    fileprivate mutating func perform(_ request: GroupRequest) throws(GroupFailure) -> String {
        switch request {
        case .lookUp(let name):
            guard let group = self.groups[name] else { throw Self.failure(.groupNotFound) }
            return self.key(of: group.number)
        case .change(let change):
            let tokens = change.tokens.filter { !self.invalidTokens.contains($0) }
            if change.operation == .create {
                let name = change.name ?? ""
                guard self.groups[name] == nil else { throw Self.failure(.groupExists) }
                guard !tokens.isEmpty else { throw Self.failure(.noValidTokens) }
                self.lastNumber += 1
                self.groups[name] = .init(number: self.lastNumber, members: tokens)
                return self.key(of: self.lastNumber)
            }
            return try self.change(change, tokens)
        }
    }

    private mutating func change(_ change: GroupChange, _ tokens: [String]) throws(GroupFailure) -> String {
        let number = change.key?.split(separator: "/").first.flatMap { Int($0) }
        guard let (name, group) = self.groups.first(where: { $0.value.number == number }),
            change.name == nil || change.name == name
        else { throw Self.failure(.groupNotFound) }
        guard !tokens.isEmpty else { throw Self.failure(.noValidTokens) }
        let others = group.members.filter { !tokens.containsToken($0) }
        let members =
            change.operation == .remove ? others : group.members + tokens.filter { !group.members.containsToken($0) }
        guard members.count <= GroupChange.maxTokens else { throw Self.failure(.invalidField) }
        self.groups[name]?.members = members
        if members.isEmpty { self.groups[name] = nil }
        return self.key(of: group.number)
    }

    private mutating func key(of number: Int) -> String {
        self.lastKey += 1
        return "\(number)/key-\(self.lastKey)"
    }

    private static func failure(_ kind: GroupFailure.Kind) -> GroupFailure {
        let text =
            switch kind {
            case .groupExists: "notification_key already exists"
            case .groupNotFound: "notification_key not found"
            case .noValidTokens: "no valid registration ids"
            case .groupKeyInvalid, .invalidField, .upstreamCredentials, .upstreamInternal, .upstreamUnavailable,
                .upstreamProtocol:
                "BadRequest"
            }
        return GroupFailure(kind, text: text)
    }
}
