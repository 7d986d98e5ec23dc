package import NIOCore

/// Runs a task's jobs on one event loop.
///
/// A task started with this preference stays on the loop across every suspension, which is what keeps `async` code as
/// cheap as callbacks. Nothing that runs here may block. Make one per loop and keep it.
package final class EventLoopTaskExecutor: TaskExecutor {
    /// The loop every job runs on.
    package let eventLoop: any EventLoop

    /// Creates the executor of one loop.
    ///
    /// - Parameter eventLoop: the loop every job runs on.
    package init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Hands a job to the loop, from whatever thread it became ready on.
    ///
    /// - Parameter job: the job to run.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.eventLoop.execute {
            // Unsafe because the runtime cannot check that each job runs exactly once; this closure runs once.
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
