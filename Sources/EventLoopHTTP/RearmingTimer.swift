import NIOCore

/// One timer for a deadline that moves with every request.
///
/// Scheduling on the loop costs an allocation and a heap operation. So a deadline that moves later leaves the scheduled
/// wake-up in place, and a wake-up that is too early is scheduled again. A busy keep-alive connection thus wakes up
/// once in many seconds instead of twice for each request. Used only on its event loop.
final class RearmingTimer {
    private let eventLoop: any EventLoop
    private var onExpiry: (() -> Void)?
    private var deadline: NIODeadline?
    private var wakeUp: (at: NIODeadline, task: Scheduled<Void>)?

    init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Sets the action for passed deadlines, until `stop()`.
    func start(onExpiry: @escaping () -> Void) {
        self.onExpiry = onExpiry
    }

    func set(_ deadline: NIODeadline) {
        self.deadline = deadline
        if let wakeUp, wakeUp.at <= deadline {
            return
        }
        self.wakeUp?.task.cancel()
        self.schedule(at: deadline)
    }

    /// Removes the deadline. A scheduled wake-up has no effect.
    func clear() {
        self.deadline = nil
    }

    func stop() {
        self.deadline = nil
        self.onExpiry = nil
        self.wakeUp?.task.cancel()
        self.wakeUp = nil
    }

    private func schedule(at deadline: NIODeadline) {
        guard self.onExpiry != nil else { return }
        let task = self.eventLoop.assumeIsolated()
            .scheduleTask(deadline: deadline) {
                self.wakeUp = nil
                self.wake()
            }
        self.wakeUp = (deadline, task)
    }

    private func wake() {
        guard let deadline = self.deadline else { return }
        guard self.eventLoop.now >= deadline else {
            self.schedule(at: deadline)
            return
        }
        self.deadline = nil
        self.onExpiry?()
    }
}
