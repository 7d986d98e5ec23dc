import NIOCore

/// How far an event loop is behind, told by how long its turns are.
///
/// A loop handles everything that has arrived before it looks for more, so what it comes to late in a turn has waited at
/// least since the turn began. A single long turn is no overload: bursts and busy neighbours make those. So being behind
/// counts only once long turns have taken most of the time for a while. Pure: the caller supplies the time.
struct LoopLag {
    /// Turns that are no longer are as they should be.
    let longTurn: TimeAmount
    /// The time over which long turns are added up.
    let window: TimeAmount
    private var turnBegan: NIODeadline?
    private var windowBegan = NIODeadline.distantPast
    private var longTime = TimeAmount.zero
    /// Whether long turns took more than three quarters of the last window.
    private(set) var isBehind = false

    init(longTurn: TimeAmount, window: TimeAmount) {
        self.longTurn = longTurn
        self.window = window
    }

    /// Something has come up that may be the first of its turn.
    ///
    /// - Returns: whether it is, so that ``endTurn(at:)`` is due when the loop has been round.
    mutating func beginTurn(at now: NIODeadline) -> Bool {
        guard self.turnBegan == nil else { return false }
        self.turnBegan = now
        return true
    }

    /// By how much the loop is behind; zero unless it has been so for a while.
    func lag(at now: NIODeadline) -> TimeAmount {
        guard self.isBehind, let turnBegan = self.turnBegan else { return .zero }
        return now - turnBegan
    }

    /// The loop has been round.
    mutating func endTurn(at now: NIODeadline) {
        guard let turnBegan = self.turnBegan else { return }
        self.turnBegan = nil
        if now - turnBegan > self.longTurn { self.longTime = self.longTime + (now - turnBegan) }
        let elapsed = now - self.windowBegan
        guard elapsed >= self.window else { return }
        self.isBehind = self.longTime.nanoseconds > elapsed.nanoseconds / 4 * 3
        self.windowBegan = now
        self.longTime = .zero
    }
}
