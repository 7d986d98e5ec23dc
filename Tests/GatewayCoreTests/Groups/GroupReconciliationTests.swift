import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

struct GroupReconciliationTests {
    private static func group(
        _ members: [DeviceGroup.Member] = [],
        key: String? = "k",
        version: Int = 1
    ) throws -> DeviceGroup {
        DeviceGroup(
            tenant: try .sample(),
            tenantCreatedAt: .sample,
            name: "g",
            upstreamName: "g",
            key: key,
            members: members,
            isComplete: true,
            version: version,
            updatedAt: .sample
        )
    }

    /// Runs a reconciliation against an FCM that accepts every change.
    ///
    /// - Returns: the changes, each as its operation and number of tokens.
    private static func changes(_ group: DeviceGroup, toward wanted: [String]) -> [String] {
        var reconciliation = GroupReconciliation(group, toward: wanted)
        var changes: [String] = []
        while case .call(let request) = reconciliation.next() {
            guard case .change(let change) = request else {
                reconciliation.received(.failing(.groupNotFound), of: request)
                continue
            }
            changes.append("\(change.operation) \(change.tokens.count)")
            reconciliation.received(GroupResult(.success("k"), upstreamCode: "200"), of: request)
        }
        return changes
    }

    private static func members(_ prefix: String, _ count: Int) -> [DeviceGroup.Member] {
        (0..<count).map { DeviceGroup.Member("\(prefix)-\($0)", .member) }
    }

    @Test("A call names at most 20 tokens, and the last old member leaves only after new members are added")
    func steps() throws {
        let new = (0..<20).map { "new-\($0)" }
        #expect(
            Self.changes(try Self.group(Self.members("old", 20)), toward: new)
                == ["remove 19", "add 19", "remove 1", "add 1"]
        )
        #expect(Self.changes(try Self.group(Self.members("old", 1)), toward: ["x"]) == ["add 1", "remove 1"])
        #expect(Self.changes(try Self.group(Self.members("old", 2)), toward: ["old-0", "x"]) == ["remove 1", "add 1"])
        #expect(
            Self.changes(try Self.group(Self.members("old", 45)), toward: []) == ["remove 20", "remove 20", "remove 5"]
        )
        #expect(Self.changes(try Self.group(key: nil), toward: new) == ["create 20"])
        #expect(Self.changes(try Self.group(Self.members("new", 20)), toward: new) == [])
    }

    @Test("The group holds the intent before the request, and drops it if FCM refuses")
    func intents() throws {
        var reconciliation = GroupReconciliation(try Self.group(Self.members("old", 1)), toward: ["old-0", "x"])
        guard case .call(let request) = reconciliation.next() else { return #expect(Bool(false)) }
        #expect(reconciliation.group.members.last == DeviceGroup.Member("x", .adding))
        #expect(!reconciliation.group.isExact)
        reconciliation.stored(version: 2, at: .sample)
        reconciliation.received(.failing(.upstreamCredentials), of: request)
        #expect(reconciliation.next() == .refused(Refusal(.upstreamCredentials, "upstream_credentials")))
        #expect(reconciliation.group.tokens == ["old-0"])
        #expect(reconciliation.group.isExact)
        #expect(reconciliation.group.version == 2)
    }

    @Test(
        "The intent stays if the outcome at FCM is unknown",
        arguments: [GroupFailure.Kind.upstreamUnavailable, .upstreamProtocol]
    )
    func open(kind: GroupFailure.Kind) throws {
        var reconciliation = GroupReconciliation(try Self.group(Self.members("old", 2)), toward: ["old-0"])
        guard case .call(let request) = reconciliation.next() else { return #expect(Bool(false)) }
        reconciliation.received(.failing(kind), of: request)
        #expect(reconciliation.group.members.last == DeviceGroup.Member("old-1", .removing))
        #expect(reconciliation.group.tokens == ["old-0"])
        guard case .refused = reconciliation.next() else { return #expect(Bool(false)) }
    }

    @Test("Of two canonically equivalent tokens, only the one that FCM refuses is dropped")
    func equalTokens() throws {
        let (open, new) = ("e\u{301}", "\u{E9}")
        var reconciliation = GroupReconciliation(try Self.group([DeviceGroup.Member(open, .removing)]), toward: [new])
        guard case .call(let request) = reconciliation.next() else { return #expect(Bool(false)) }
        guard case .change(let change) = request else { return #expect(Bool(false)) }
        #expect(change.operation == .add && change.tokens.map { Array($0.utf8) } == [Array(new.utf8)])
        reconciliation.received(.failing(.noValidTokens), of: request)
        #expect(reconciliation.group.members.map { Array($0.token.utf8) } == [Array(open.utf8)])
        #expect(reconciliation.group.members.map(\.standing) == [.removing])
    }

    @Test("Contradictory answers from FCM end the reconciliation with a conflict after a bounded number of calls")
    func bounded() throws {
        var reconciliation = GroupReconciliation(try Self.group(Self.members("old", 1)), toward: ["x"])
        var calls = 0
        while case .call(let request) = reconciliation.next() {
            calls += 1
            switch request {
            case .lookUp: reconciliation.received(GroupResult(.success("k"), upstreamCode: "200"), of: request)
            case .change: reconciliation.received(.failing(.groupNotFound), of: request)
            }
        }
        #expect(calls < 30)
        #expect(reconciliation.next() == .refused(Refusal(.groupConflict)))
    }

    @Test("A key that FCM rejects is looked up once; a second rejection fails the reconciliation")
    func renewedKey() throws {
        var reconciliation = GroupReconciliation(try Self.group(Self.members("old", 1)), toward: ["old-0", "x"])
        var lookUps = 0
        while case .call(let request) = reconciliation.next() {
            switch request {
            case .lookUp:
                lookUps += 1
                reconciliation.received(GroupResult(.success("k2"), upstreamCode: "200"), of: request)
            case .change: reconciliation.received(.failing(.groupKeyInvalid), of: request)
            }
        }
        #expect(lookUps == 1)
        #expect(reconciliation.next() == .refused(Refusal(.upstreamProtocol)))
    }

    @Test("If FCM refuses to add new members beside the last old one, the old one is removed first")
    func room() throws {
        var reconciliation = GroupReconciliation(try Self.group(Self.members("old", 1)), toward: ["x"])
        var changes: [GroupChange.Operation] = []
        while case .call(let request) = reconciliation.next() {
            guard case .change(let change) = request else { break }
            changes.append(change.operation)
            reconciliation.received(
                changes.count == 1 ? .failing(.invalidField) : GroupResult(.success("k"), upstreamCode: "200"),
                of: request
            )
        }
        #expect(changes == [.add, .remove, .add])
        #expect(reconciliation.next() == .settled)
    }
}
