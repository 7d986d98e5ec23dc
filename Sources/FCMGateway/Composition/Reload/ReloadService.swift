import ServiceLifecycle
import UnixSignals

/// Reloads the configuration at every SIGHUP, one after the other.
struct ReloadService: Service {
    /// The signals, trapped since before the gateway began to start: a SIGHUP must not end it then either.
    let signals: UnixSignalsSequence
    /// Reloads.
    let reloader: ConfigurationReloader

    func run() async throws {
        for await _ in self.signals.cancelOnGracefulShutdown() {
            self.reloader.reload()
        }
    }
}
