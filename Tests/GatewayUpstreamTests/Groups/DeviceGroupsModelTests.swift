import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

/// Random sequences of group changes, compared with a model.
struct DeviceGroupsModelTests {
    private static let steps = 120

    /// The expected members of each group, by name.
    private typealias Model = [String: Set<String>]

    @Test("After each random change, FCM's groups have exactly the declared members", arguments: 0..<UInt64(6))
    func lives(seed: UInt64) async throws {
        try await GroupFixture.legacy { fixture in
            var random = SeededGenerator(seed: seed &* 977 &+ 13)
            var model: Model = [:]
            var groups = fixture.groups()
            for step in 0..<Self.steps {
                let name = ["one", "two", "größe/ä"].randomElement(using: &random) ?? "one"
                let tokens = Self.tokens(using: &random)
                let before = model
                switch Int.random(in: 0..<9, using: &random) {
                case 0...2:
                    _ = try await groups.put(name, tokens: tokens, by: fixture.caller())
                    model[name] = Set(tokens)
                case 3:
                    let wanted = (model[name] ?? []).union(tokens)
                    let code = await Self.code { _ = try await groups.add(tokens, to: name, by: fixture.caller()) }
                    if model[name] == nil {
                        #expect(code == (wanted.count > 20 ? .groupTooLarge : .notFound), "step \(step)")
                    } else if wanted.count > 20 {
                        #expect(code == .groupTooLarge, "step \(step)")
                    } else {
                        #expect(code == nil, "step \(step)")
                        model[name] = wanted
                    }
                case 4:
                    let leaving = Array((model[name] ?? []).sorted().prefix(Int.random(in: 0...20, using: &random)))
                    let given = leaving.isEmpty ? tokens : leaving
                    let code = await Self.code { _ = try await groups.remove(given, from: name, by: fixture.caller()) }
                    #expect(code == (model[name] == nil ? .notFound : nil), "step \(step)")
                    let rest = model[name]?.subtracting(given)
                    model[name] = rest?.isEmpty == true ? nil : rest
                case 5:
                    let code = await Self.code { try await groups.delete(name, by: fixture.caller()) }
                    #expect(code == (model[name] == nil ? .notFound : nil), "step \(step)")
                    model[name] = nil
                case 6:
                    // FCM loses the group; the next declaration creates it again.
                    fixture.emulator.deleteGroup(named: name, senderID: GroupFixture.senderID)
                    let wanted = Bool.random(using: &random) ? model[name].map { $0.sorted() } ?? tokens : tokens
                    _ = try await groups.put(name, tokens: wanted, by: fixture.caller())
                    model[name] = Set(wanted)
                case 7:
                    try await Self.loseKey(of: name, fixture, damaged: Bool.random(using: &random))
                    _ = try await groups.put(name, tokens: tokens, by: fixture.caller())
                    model[name] = Set(tokens)
                default:
                    groups = fixture.groups()
                }
                for name in Set(model.keys).union(before.keys) {
                    #expect(fixture.upstreamMembers(name) == model[name], "step \(step)")
                    let stored = try await groups.stored(name, of: fixture.profile)
                    #expect(stored.map { Set($0.tokens) } == model[name], "step \(step)")
                    #expect(stored?.isExact ?? true, "step \(step)")
                }
            }
            // FCM has no group that the gateway doesn't know.
            let known = try await fixture.store.groups().map(\.upstreamName)
            #expect(Set(fixture.emulator.groupNames(senderID: GroupFixture.senderID)) == Set(known))
        }
    }

    private static func tokens(using random: inout SeededGenerator) -> [String] {
        let count = [1, 2, 3, 5, 19, 20].randomElement(using: &random) ?? 1
        return Array((0..<30).map { "token-\($0)" }.shuffled(using: &random).prefix(count))
    }

    /// Removes a stored key, or replaces it with one that FCM never issued.
    private static func loseKey(of name: String, _ fixture: GroupFixture, damaged: Bool) async throws {
        guard var group = try await fixture.store.group(named: name, of: fixture.profile.id) else { return }
        group.key = damaged ? "damaged" : nil
        _ = try await fixture.store.save(group)
    }

    private static func code(_ body: () async throws -> Void) async -> OutcomeCode? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? Refusal)?.code ?? .internalError
        }
    }
}
