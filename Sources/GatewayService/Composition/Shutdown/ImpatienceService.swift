import ServiceLifecycle
import UnixSignals

/// Listens for a second signal to stop, which says that nobody wants to wait for the first.
struct ImpatienceService: Service {
    /// Is told.
    let impatience: Impatience

    func run() async throws {
        var count = 0
        for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint).cancelOnGracefulShutdown() {
            count += 1
            if count == 2 { self.impatience.declare() }
        }
    }
}
