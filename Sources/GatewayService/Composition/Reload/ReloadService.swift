import ServiceLifecycle
import UnixSignals

/// Reloads the configuration at every SIGHUP, one after the other.
struct ReloadService: Service {
    /// The signals, trapped since before the gateway began to start: a SIGHUP must not end it then either.
    let signals: UnixSignalsSequence
    /// Reloads.
    let reloader: ConfigurationReloader
    /// Opens what was moved away anew; done even when the configuration can't be read.
    let reopen: @Sendable () async -> Void

    func run() async throws {
        // A disk that hangs keeps neither a reload waiting nor a stop: this is waited for by the next one alone.
        var reopening: Task<Void, Never>?
        defer { reopening?.cancel() }
        for await _ in self.signals.cancelOnGracefulShutdown() {
            reopening = Task { [reopening] in
                await reopening?.value
                await self.reopen()
            }
            self.reloader.reload()
        }
    }
}
