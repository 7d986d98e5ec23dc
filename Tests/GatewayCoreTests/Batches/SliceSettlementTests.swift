import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

struct SliceSettlementTests {
    private static func recipients(_ count: Int) -> [Batch.Recipient] {
        (0..<count).map { Batch.Recipient(place: $0, "t\($0)") }
    }

    private static func settle(
        _ outcomes: [RecipientOutcome],
        resends: Bool = false,
        keeps: Bool = false,
        retries: Int = 0
    ) -> SliceSettlement {
        var options = Batch.Options()
        (options.resendsUnknown, options.keepsAccepted) = (resends, keeps)
        return SliceSettlement(Self.recipients(outcomes.count), outcomes, options, retries: retries)
    }

    private static let accepted = RecipientOutcome.accepted(Acceptance(messageID: "m"))

    @Test("Each recipient is counted once, or stays pending")
    func sums() {
        for code in OutcomeCode.allCases {
            let settlement = Self.settle([Self.accepted, .rejected(code), Self.accepted])
            let added = settlement.added
            #expect(added.accepted + added.rejected + added.unknown + settlement.pending.count == 3, "\(code)")
            let isFinal = !code.isRetryable && code != .upstreamCredentials
            #expect(settlement.pending.isEmpty == isFinal, "\(code)")
            #expect(settlement.results.map(\.place) == (isFinal ? [1] : []), "\(code)")
            #expect((settlement.wait == nil) == settlement.pending.isEmpty, "\(code)")
        }
        #expect(Self.settle([Self.accepted], keeps: true).results.map(\.text) == ["t0"])
    }

    @Test("An unknown outcome is final, or the recipient is sent to once more")
    func unknown() {
        #expect(Self.settle([.rejected(.outcomeUnknown)]).added.unknown == 1)
        let resent = Self.settle([.rejected(.outcomeUnknown)], resends: true)
        #expect(resent.pending.map(\.isResent) == [true] && resent.wait == 10 && resent.added.unknown == 0)
        var options = Batch.Options()
        options.resendsUnknown = true
        let last = SliceSettlement(resent.pending, [.rejected(.outcomeUnknown)], options, retries: 1)
        #expect(last.pending.isEmpty && last.added.unknown == 1)
    }

    @Test(
        "The wait begins with FCM's or the cause's own, doubles, and ends at ten minutes",
        arguments: [
            (OutcomeCode.upstreamUnavailable, nil, Rejection.LimitSource?.none, 0, 10),
            (.upstreamUnavailable, nil, nil, 3, 80),
            (.upstreamUnavailable, nil, nil, 40, 600), (.upstreamUnavailable, 900, nil, 2, 900),
            (.tenantRateExceeded, nil, .fcm, 0, 60), (.tenantRateExceeded, 90, .fcm, 0, 90),
            (.deviceRateExceeded, 7, .gateway, 5, 7), (.tenantRateExceeded, 1, .gateway, 9, 1),
        ] as [(OutcomeCode, Int?, Rejection.LimitSource?, Int, Int)]
    )
    func waits(code: OutcomeCode, demanded: Int?, source: Rejection.LimitSource?, retries: Int, wait: Int) {
        let rejection = Rejection(code: code, retryAfter: demanded, limitedBy: source)
        let settlement = Self.settle([Self.accepted, .rejected(rejection)], retries: retries)
        #expect(settlement.wait == wait)
        #expect(settlement.hasFailed == (source == nil))
        #expect(settlement.quotaPause == (source == .fcm ? max(60, demanded ?? 0) : nil))
    }

    @Test("A refused credential is reported, and nothing is lost")
    func credential() {
        let settlement = Self.settle([.rejected(.upstreamCredentials), .rejected(.upstreamCredentials)])
        #expect(settlement.lacksCredential && settlement.pending.count == 2 && settlement.added == Batch.Counts())
    }
}

struct TenantTurnsTests {
    private static func tenants(_ count: Int) throws -> [TenantID] { try (0..<count).map { try .sample("t\($0)") } }

    @Test("Tenants with something due are sent to alike, whatever the sizes of their slices")
    func fair() throws {
        let tenants = try Self.tenants(3)
        var (turns, sent) = (TenantTurns(), [TenantID: Int]())
        for _ in 0..<10_000 {
            guard let next = turns.next(of: tenants) else { return }
            let size = next == tenants[0] ? 500 : next == tenants[1] ? 100 : 1
            turns.add(size, of: next)
            sent[next, default: 0] += size
        }
        let counts = tenants.compactMap { sent[$0] }
        #expect(counts.count == 3 && (counts.max() ?? 0) - (counts.min() ?? 0) <= 500)
    }

    @Test("A tenant that was idle is next, and takes no turns for the time that has passed")
    func idle() throws {
        let tenants = try Self.tenants(2)
        var turns = TenantTurns()
        for _ in 0..<100 { if let next = turns.next(of: [tenants[0]]) { turns.add(500, of: next) } }
        var order: [TenantID] = []
        for _ in 0..<6 {
            guard let next = turns.next(of: tenants) else { return }
            turns.add(500, of: next)
            order.append(next)
        }
        #expect(order.prefix(2).contains(tenants[1]))
        #expect(order.count { $0 == tenants[0] } >= 2)
    }

    @Test("Nothing is next if nothing is due")
    func nothing() {
        var turns = TenantTurns()
        let next = turns.next(of: [])
        #expect(next == nil)
    }
}
