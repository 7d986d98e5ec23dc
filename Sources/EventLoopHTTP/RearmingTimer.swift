import NIOCore

/// One timer for a deadline that moves with every request.
///
/// Scheduling on the loop costs an allocation and a heap operation, so a deadline that moves later leaves the scheduled
/// wake-up alone: when it comes too early, it is scheduled again. A busy keep-alive connection thus wakes up once in
/// many seconds instead of twice a request. Used on its event loop only.
final class RearmingTimer {
    private let eventLoop: any EventLoop
    private var onExpiry: (() -> Void)?
    private var deadline: NIODeadline?
    private var wakeUp: (at: NIODeadline, task: Scheduled<Void>)?

    init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Sets what happens when a deadline passes, until `stop()`.
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

    /// Removes the deadline; a scheduled wake-up passes unnoticed.
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
