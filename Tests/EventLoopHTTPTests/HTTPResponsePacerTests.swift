import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTPResponsePacer")
struct HTTPResponsePacerTests {
    private static let start = NIODeadline.uptimeNanoseconds(5_000_000_000)

    private static var pacer: HTTPResponsePacer {
        HTTPResponsePacer(interval: .milliseconds(10), burst: .milliseconds(50), maxDelay: .milliseconds(100))
    }

    @Test("A burst goes out at once, what follows in its turn, and nobody waits longer than the longest wait")
    func burst() {
        var pacer = Self.pacer
        let delays = (0..<20).map { _ in pacer.delay(at: Self.start).nanoseconds / 1_000_000 }
        #expect(delays == [0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100, 100, 100, 100])
    }

    @Test("Answers that come no faster than they may never wait")
    func steady() {
        var pacer = Self.pacer
        for count in 0..<1_000 {
            #expect(pacer.delay(at: Self.start + .milliseconds(Int64(count) * 10)) == .zero)
        }
    }

    @Test("A pause gives the burst back, and no more than that")
    func pause() {
        var pacer = Self.pacer
        for _ in 0..<100 { _ = pacer.delay(at: Self.start) }
        let later = Self.start + .seconds(60)
        #expect((0..<8).map { _ in pacer.delay(at: later) }.count { $0 == .zero } == 6)
    }

    @Test("Many at once leave no faster than the interval allows")
    func rate() {
        var pacer = Self.pacer
        // Twice as many as may be, for ten seconds; a wait of 100 ms is ten of them, so more are held back for longer
        // than the longest wait only by leaving early.
        var times: [Int64] = []
        for count in 0..<150 {
            let now = Self.start + .milliseconds(Int64(count) * 9)
            times.append((now + pacer.delay(at: now) - Self.start).nanoseconds / 1_000_000)
        }
        #expect(times == times.sorted())
        for (first, second) in zip(times.dropFirst(60), times.dropFirst(61)) { #expect(second - first == 10) }
    }
}
