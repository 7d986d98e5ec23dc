import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Synchronization
import Testing

@testable import GatewayUpstream

/// The gateway crashes after each step of a change; the next declaration or deletion must still take full effect.
struct DeviceGroupsCrashTests {
    /// Stops everything after a number of steps. A step is a write, or one half of a request.
    private final class Fuse: Sendable {
        private let left: Mutex<Int>

        init(_ steps: Int) { self.left = Mutex(steps) }

        /// Counts a step; returns true if it may run.
        func burns() -> Bool {
            self.left.withLock { left in
                left -= 1
                return left >= 0
            }
        }

        /// True if the process is dead.
        var isDead: Bool { self.left.withLock { $0 < 0 } }
    }

    /// An FCM whose request or response is lost when the process dies.
    private struct MortalUpstream: GroupUpstream {
        let upstream: any GroupUpstream
        let fuse: Fuse

        func perform(
            _ request: GroupRequest,
            of profile: TenantProfile,
            deadline: Uptime,
            origin: RequestOrigin
        ) async -> GroupResult {
            guard self.fuse.burns() else { return GroupResult(transportFailure: "dead") }
            let result = await self.upstream.perform(request, of: profile, deadline: deadline, origin: origin)
            return self.fuse.burns() ? result : GroupResult(transportFailure: "dead")
        }
    }

    private static let scenes: [(before: [String], after: [String])] = [
        ([], Self.tokens("new", 3)),
        (Self.tokens("old", 3), Self.tokens("new", 3)),
        (Self.tokens("old", 20), Self.tokens("new", 20)),
        (Self.tokens("old", 20), Self.tokens("old", 5) + Self.tokens("new", 15)),
        (Self.tokens("old", 1), Self.tokens("new", 20)),
        (Self.tokens("old", 20), Self.tokens("new", 1)),
        (Self.tokens("old", 4), []),
    ]

    @Test("After a crash at any step, FCM has the members of the next declaration", arguments: 0..<Self.scenes.count)
    func deaths(scene: Int) async throws {
        let (before, after) = Self.scenes[scene]
        try await GroupFixture.legacy { fixture in
            let outcomes = [after, before, Self.tokens("third", 20), Self.tokens("old", 10) + Self.tokens("new", 10)]
            var deaths = 0
            for wanted in outcomes where !wanted.isEmpty {
                for steps in 0... {
                    let name = "group \(scene) \(deaths) \(steps)"
                    if !before.isEmpty {
                        _ = try await fixture.groups().put(name, tokens: before, by: fixture.caller())
                    }
                    let fuse = Fuse(steps)
                    await Self.change(name, to: after, fixture, until: fuse)
                    deaths += 1
                    // Before the next declaration, the gateway has stored every member and group that FCM has.
                    let stored = try await fixture.store.groups().first { $0.name == name }
                    let possible = Set(stored?.members.map(\.token) ?? [])
                    let upstream = fixture.upstreamMembers(name)
                    #expect((upstream ?? []).isSubset(of: possible), "\(name): unknown members")
                    #expect(upstream == nil || stored != nil, "\(name): an orphan")

                    let (group, _) = try await fixture.groups().put(name, tokens: wanted, by: fixture.caller())
                    #expect(fixture.upstreamMembers(name) == Set(wanted), "\(name)")
                    #expect(Set(group.tokens) == Set(wanted), "\(name)")
                    #expect(group.isExact, "\(name)")
                    if !fuse.isDead { break }
                }
            }
            #expect(deaths > 8)
        }
    }

    @Test("After a crash at any step, the next deletion removes the group", arguments: 0..<Self.scenes.count)
    func deletions(scene: Int) async throws {
        let (before, after) = Self.scenes[scene]
        try await GroupFixture.legacy { fixture in
            for steps in 0... {
                let name = "group \(steps)"
                if !before.isEmpty {
                    _ = try await fixture.groups().put(name, tokens: before, by: fixture.caller())
                }
                let fuse = Fuse(steps)
                await Self.change(name, to: after, fixture, until: fuse)
                do {
                    try await fixture.groups().delete(name, by: fixture.caller())
                } catch let refusal as Refusal {
                    #expect(refusal.code == .notFound, "\(name)")
                }
                #expect(fixture.upstreamMembers(name) == nil, "\(name)")
                #expect(try await !fixture.store.groups().contains { $0.name == name }, "\(name)")
                if !fuse.isDead { break }
            }
        }
    }

    private static func change(_ name: String, to tokens: [String], _ fixture: GroupFixture, until fuse: Fuse) async {
        fixture.store.ask { fuse.burns() }
        let groups = fixture.groups(over: MortalUpstream(upstream: fixture.client, fuse: fuse))
        if tokens.isEmpty {
            try? await groups.delete(name, by: fixture.caller())
        } else {
            _ = try? await groups.put(name, tokens: tokens, by: fixture.caller())
        }
        fixture.store.ask { true }
    }

    private static func tokens(_ prefix: String, _ count: Int) -> [String] {
        (0..<count).map { "\(prefix)-\($0)" }
    }
}
