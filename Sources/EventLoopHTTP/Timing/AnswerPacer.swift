import NIOCore

/// Spaces answers that come faster than a loop should spend its time on.
///
/// A burst goes out at once; beyond it each answer waits for its turn, but never longer than the longest wait. Pure: the
/// caller supplies the time.
struct AnswerPacer {
    /// The time between two answers once the burst is used up.
    let interval: TimeAmount
    /// How many answers may go out at once, as the time that they would take at the interval.
    let burst: TimeAmount
    /// The longest wait.
    let maxDelay: TimeAmount
    private var next = NIODeadline.distantPast

    init(interval: TimeAmount, burst: TimeAmount, maxDelay: TimeAmount) {
        self.interval = interval
        self.burst = burst
        self.maxDelay = maxDelay
    }

    /// How long the answer that is ready now has to wait.
    mutating func delay(at now: NIODeadline) -> TimeAmount {
        let turn = min(max(self.next, now - self.burst), now + self.maxDelay)
        self.next = turn + self.interval
        return turn > now ? turn - now : .zero
    }
}
