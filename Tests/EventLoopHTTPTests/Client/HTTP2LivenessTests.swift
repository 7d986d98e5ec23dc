import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTP2Liveness")
struct HTTP2LivenessTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private static let limits = HTTP2Liveness.Limits(
        pingAfterWaiting: .seconds(5),
        pingAfterIdle: .seconds(30),
        pingTimeout: .seconds(4),
        idleTimeout: .seconds(60),
        lifetime: .seconds(1000),
        lifetimeJitter: 0.2
    )

    private static func at(_ seconds: Int64) -> NIODeadline { Self.start + .seconds(seconds) }

    private static func fresh(chance: Double = 0) -> HTTP2Liveness {
        HTTP2Liveness(limits: Self.limits, now: Self.start, chance: chance)
    }

    @Test("A silent connection is pinged sooner with requests in flight than without")
    func pings() {
        var liveness = Self.fresh()
        #expect(liveness.verdict(at: Self.at(29)) == .fine(until: Self.at(30)))
        #expect(liveness.verdict(at: Self.at(30)) == .ping)
        liveness.becameBusy()
        #expect(liveness.verdict(at: Self.at(4)) == .fine(until: Self.at(5)))
        #expect(liveness.verdict(at: Self.at(5)) == .ping)
        _ = liveness.heard(at: Self.at(5))
        #expect(liveness.verdict(at: Self.at(6)) == .fine(until: Self.at(10)))
    }

    @Test("A connection is dead if nothing arrives within the ping timeout")
    func dies() {
        var liveness = Self.fresh()
        liveness.becameBusy()
        liveness.pinged(at: Self.at(5))
        #expect(liveness.verdict(at: Self.at(8)) == .fine(until: Self.at(9)))
        #expect(liveness.verdict(at: Self.at(9)) == .dead)
        #expect(liveness.verdictWhileDraining(at: Self.at(9)) == .dead)
        let isAnswer = liveness.heard(at: Self.at(9))
        #expect(isAnswer)
        #expect(liveness.verdict(at: Self.at(9)) == .fine(until: Self.at(14)))
        #expect(liveness.verdictWhileDraining(at: Self.at(14)) == .ping)
    }

    @Test("A connection without requests becomes idle even if frames arrive")
    func idles() {
        var liveness = Self.fresh()
        _ = liveness.heard(at: Self.at(59))
        #expect(liveness.verdict(at: Self.at(59)) == .fine(until: Self.at(60)))
        #expect(liveness.verdict(at: Self.at(60)) == .idle)
        liveness.becameBusy()
        _ = liveness.heard(at: Self.at(200))
        #expect(liveness.verdict(at: Self.at(200)) == .fine(until: Self.at(205)))
        liveness.becameIdle(at: Self.at(200))
        #expect(liveness.verdict(at: Self.at(200)) == .fine(until: Self.at(230)))
        #expect(liveness.verdict(at: Self.at(260)) == .idle)
    }

    @Test(
        "A connection retires at the end of its lifetime, shortened by random jitter",
        arguments: [
            (0.0, 1000), (0.5, 900), (1.0, 800),
        ]
    )
    func retires(chance: Double, seconds: Int64) {
        var liveness = Self.fresh(chance: chance)
        liveness.becameBusy()
        _ = liveness.heard(at: Self.at(seconds - 1))
        #expect(liveness.verdict(at: Self.at(seconds - 1)) == .fine(until: Self.at(seconds)))
        #expect(liveness.verdict(at: Self.at(seconds)) == .retire)
    }
}
