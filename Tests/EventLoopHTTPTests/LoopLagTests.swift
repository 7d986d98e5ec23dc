import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("LoopLag")
struct LoopLagTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private static func at(_ milliseconds: Int) -> NIODeadline {
        self.start + .milliseconds(Int64(milliseconds))
    }

    private var lag = LoopLag(longTurn: .milliseconds(1), window: .milliseconds(100))
    private var time = 0

    /// Turns of the loop, one behind the other, each with a pause before it.
    private mutating func turn(of milliseconds: Int, pause: Int = 0, times: Int = 1) {
        for _ in 0..<times {
            self.time += pause
            let isFirst = self.lag.beginTurn(at: Self.at(self.time))
            let isSecond = self.lag.beginTurn(at: Self.at(self.time))
            #expect(isFirst && !isSecond)
            self.time += milliseconds
            self.lag.endTurn(at: Self.at(self.time))
        }
    }

    /// What is told some time into a turn.
    private mutating func told(after milliseconds: Int) -> TimeAmount {
        _ = self.lag.beginTurn(at: Self.at(self.time))
        self.time += milliseconds
        let told = self.lag.lag(at: Self.at(self.time))
        self.lag.endTurn(at: Self.at(self.time))
        return told
    }

    @Test("One long turn is no overload, however long")
    mutating func burst() {
        self.turn(of: 0, pause: 1, times: 150)
        #expect(self.told(after: 60) == .zero)
        self.turn(of: 0, pause: 1, times: 100)
        #expect(self.told(after: 5) == .zero)
    }

    @Test("Long turns one behind the other tell their lag once a window is full of them, until one is not")
    mutating func overload() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 9)
        #expect(!self.lag.isBehind)
        self.turn(of: 10)
        #expect(self.lag.isBehind)
        #expect(self.told(after: 3) == .milliseconds(3))
        #expect(self.told(after: 7) == .milliseconds(7))
        self.turn(of: 5, times: 18)
        #expect(self.told(after: 2) == .milliseconds(2))
        self.turn(of: 0, pause: 1, times: 100)
        #expect(self.told(after: 40) == .zero)
    }

    @Test("Short turns are no overload, even without a pause")
    mutating func shortTurns() {
        self.turn(of: 1, times: 500)
        #expect(!self.lag.isBehind)
    }

    @Test(
        "More than three quarters of the time is overload",
        arguments: [(12, 8, false), (16, 4, true), (15, 5, false)]
    )
    mutating func share(long: Int, pause: Int, isBehind: Bool) {
        self.turn(of: 0, pause: 100)
        self.turn(of: long, pause: pause, times: 5)
        #expect(self.lag.isBehind == isBehind)
    }

    @Test("After a rest nothing is left of an overload but its last window")
    mutating func rest() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 10)
        #expect(self.lag.isBehind)
        self.time += 60_000
        self.turn(of: 2)
        #expect(!self.lag.isBehind)
        #expect(self.told(after: 50) == .zero)
    }

    @Test("Outside a turn there is no lag")
    mutating func outside() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 10)
        #expect(self.lag.lag(at: Self.at(self.time + 500)) == .zero)
        self.lag.endTurn(at: Self.at(self.time + 500))
        #expect(self.lag.isBehind)
    }
}
