import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct DeviceGroupsTests {
    @Test("A repeated declaration sends FCM one look-up, and restores a group that FCM has lost")
    func idempotent() async throws {
        try await GroupFixture.legacy { fixture in
            let (_, isNew) = try await fixture.groups().put("g", tokens: ["a", "b"], by: fixture.caller())
            let count = fixture.requests.count
            let (group, isNewAgain) = try await fixture.groups().put("g", tokens: ["b", "a"], by: fixture.caller())
            #expect(isNew && !isNewAgain)
            #expect(group.isExact)
            #expect(fixture.requests.dropFirst(count).map(\.method) == ["GET"])
            fixture.emulator.deleteGroup(named: "g", senderID: GroupFixture.senderID)
            _ = try await fixture.groups().put("g", tokens: ["a", "b"], by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == ["a", "b"])
        }
    }

    @Test("Replacing all 20 members of a group doesn't delete the group in between")
    func exchange() async throws {
        try await GroupFixture.legacy { fixture in
            let (old, new) = ((0..<20).map { "old-\($0)" }, (0..<20).map { "new-\($0)" })
            let (before, _) = try await fixture.groups().put("g", tokens: old, by: fixture.caller())
            let (after, _) = try await fixture.groups().put("g", tokens: new, by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == Set(new))
            // The old key still works, so FCM did not delete the group in between.
            let key = try #require(before.key)
            let change = GroupChange(.remove, name: "g", key: key, tokens: ["new-0"])
            let result = await fixture.perform(.change(change))
            #expect((try? result.answer.get()) != nil)
            #expect(after.isExact)
        }
    }

    @Test("More than 20 members are refused without a request to FCM")
    func tooLarge() async throws {
        try await GroupFixture.legacy { fixture in
            let tokens = (0..<21).map { "t\($0)" }
            await expectRefusal(.groupTooLarge) {
                try await fixture.groups().put("g", tokens: tokens, by: fixture.caller())
            }
            _ = try await fixture.groups().put("g", tokens: Array(tokens.prefix(15)), by: fixture.caller())
            let count = fixture.requests.count
            await expectRefusal(.groupTooLarge) {
                try await fixture.groups().add((15..<21).map { "t\($0)" }, to: "g", by: fixture.caller())
            }
            #expect(fixture.requests.count == count)
        }
    }

    @Test("A change with only invalid tokens is refused and leaves the store unchanged")
    func noValidTokens() async throws {
        try await GroupFixture.legacy { fixture in
            fixture.emulator.refuse(tokens: ["bad"])
            await expectRefusal(.noValidTokens) {
                try await fixture.groups().put("g", tokens: ["bad"], by: fixture.caller())
            }
            #expect(try await fixture.store.groups().isEmpty)
            _ = try await fixture.groups().put("g", tokens: ["good"], by: fixture.caller())
            await expectRefusal(.noValidTokens) {
                try await fixture.groups().add(["bad"], to: "g", by: fixture.caller())
            }
            let group = try await fixture.groups().stored("g", of: fixture.profile)
            #expect(group?.tokens == ["good"])
            #expect(group?.isExact == true)
        }
    }

    @Test("A group found at FCM is adopted as inexact and keeps its unknown members until they are removed by name")
    func adopted() async throws {
        try await GroupFixture.legacy { fixture in
            let create = GroupRequest.change(GroupChange(.create, name: "g", tokens: ["stranger"]))
            await fixture.perform(create)
            let (group, _) = try await fixture.groups().put("g", tokens: ["a"], by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == ["stranger", "a"])
            #expect(!group.isExact)
            await expectRefusal(.conflict) { try await fixture.groups().delete("g", by: fixture.caller()) }
            #expect(fixture.upstreamMembers("g") == ["stranger"])
            // Removing the last member by name deletes the group.
            _ = try await fixture.groups().remove(["stranger"], from: "g", by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == nil)
            #expect(try await fixture.store.groups().isEmpty)
        }
    }

    @Test("An unknown group name is looked up at FCM once and then stored")
    func lookedUpOnce() async throws {
        try await GroupFixture.legacy { fixture in
            let create = GroupRequest.change(GroupChange(.create, name: "g", tokens: ["a"]))
            await fixture.perform(create)
            let groups = fixture.groups()
            for _ in 0..<3 {
                let group = try await groups.show("g", by: fixture.caller())
                #expect(group?.key != nil)
            }
            #expect(fixture.requests.count == 2)
            #expect(try await groups.show("none", by: fixture.caller()) == nil)
            #expect(try await fixture.store.groups().map(\.name) == ["g"])
        }
    }

    @Test("Concurrent declarations of one group end with the members of exactly one of them", arguments: 0..<4)
    func writers(round: Int) async throws {
        try await GroupFixture.legacy { fixture in
            let groups = fixture.groups()
            let caller = try fixture.caller()
            await withDiscardingTaskGroup { tasks in
                for writer in 0..<8 {
                    let tokens = (0..<20).map { "writer-\(writer)-\($0)" }
                    tasks.addTask { _ = try? await groups.put("g", tokens: tokens, by: caller) }
                }
            }
            let stored = try #require(try await groups.stored("g", of: fixture.profile))
            #expect(fixture.upstreamMembers("g") == Set(stored.tokens))
            #expect(stored.isExact)
            #expect(Set(stored.tokens.map { $0.split(separator: "-")[1] }).count == 1)
        }
    }

    @Test("A change that FCM refuses leaves the group exact; a 503 makes it inexact until the next change")
    func failures() async throws {
        try await GroupFixture.legacy { fixture in
            let groups = fixture.groups()
            _ = try await groups.put("g", tokens: ["a", "b"], by: fixture.caller())
            fixture.emulator.addFault(Fault(path: "/fcm/notification", action: .status(401, body: nil, headers: [])))
            await expectRefusal(.upstreamCredentials) { try await groups.add(["c"], to: "g", by: fixture.caller()) }
            #expect(try await groups.stored("g", of: fixture.profile)?.isExact == true)
            fixture.emulator.addFault(Fault(path: "/fcm/notification", action: .status(503, body: nil, headers: [])))
            await expectRefusal(.upstreamUnavailable) { try await groups.add(["c"], to: "g", by: fixture.caller()) }
            let open = try await groups.stored("g", of: fixture.profile)
            #expect(open?.isExact == false)
            #expect(open?.tokens == ["a", "b", "c"])
            _ = try await groups.remove(["a"], from: "g", by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == ["b", "c"])
            #expect(try await groups.stored("g", of: fixture.profile)?.isExact == true)
        }
    }

    @Test("At most 40 unanswered removals are stored; further ones are refused until a retry settles them")
    func openRemovals() async throws {
        try await GroupFixture.legacy { fixture in
            await fixture.perform(.change(GroupChange(.create, name: "g", tokens: ["stranger"])))
            let groups = fixture.groups()
            func remove(_ round: Int) async throws {
                let tokens = (0..<20).map { "t-\(round)-\($0)" }
                _ = try await groups.remove(tokens, from: "g", by: fixture.caller())
            }
            _ = try await groups.show("g", by: fixture.caller())
            for round in 0..<4 {
                let failing = Fault(path: "/fcm/notification", action: .status(503, body: nil, headers: []))
                if round < 2 { fixture.emulator.addFault(failing) }
                await expectRefusal(round < 2 ? .upstreamUnavailable : .groupConflict) { try await remove(round) }
            }
            #expect(try await fixture.store.groups().first?.members.count == 40)
            try await remove(0)
            #expect(try await fixture.store.groups().first?.members.isEmpty == true)
            try await remove(2)
            #expect(fixture.upstreamMembers("g") == ["stranger"])
        }
    }

    @Test("A change that the store refuses sends nothing to FCM")
    func refusingStore() async throws {
        try await GroupFixture.legacy { fixture in
            _ = try await fixture.groups().put("g", tokens: ["a"], by: fixture.caller())
            let count = fixture.requests.count
            fixture.store.ask { false }
            await expectRefusal(.overloaded) { try await fixture.groups().add(["b"], to: "g", by: fixture.caller()) }
            #expect(fixture.requests.count == count)
            #expect(fixture.upstreamMembers("g") == ["a"])
        }
    }

    @Test("A v1 tenant can create, change and delete a group")
    func v1() async throws {
        try await GroupFixture.run(.v1) { fixture in
            _ = try await fixture.groups().put("g", tokens: ["a", "b"], by: fixture.caller())
            _ = try await fixture.groups().put("g", tokens: ["c"], by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == ["c"])
            try await fixture.groups().delete("g", by: fixture.caller())
            #expect(fixture.upstreamMembers("g") == nil)
        }
    }
}
