import Synchronization

/// The settings, and who acts on them.
extension EmulatorState {
    /// How the emulator behaves now.
    var settings: EmulatorSettings { self.contents.withLock { $0.settings } }

    /// The interval between rounds of GOAWAY, and a stream that ends when it changes or the emulator stops; nil once it
    /// has stopped.
    func observeGoAwayInterval() -> (Duration?, AsyncStream<Void>)? {
        self.contents.withLock { contents in
            guard !contents.isShutDown else { return nil }
            let (change, observer) = AsyncStream<Void>.makeStream()
            contents.intervalObserver = observer
            return (contents.settings.goAwayInterval, change)
        }
    }

    /// Changes the settings and puts them into effect, also on open connections.
    func update(_ change: (inout EmulatorSettings) -> Void) {
        let (before, after, observer) = self.contents.withLock { contents in
            let before = contents.settings
            change(&contents.settings)
            return (before, contents.settings, contents.intervalObserver)
        }
        if before.goAwayInterval != after.goAwayInterval {
            observer?.finish()
        }
        if before.maxConcurrentStreams != after.maxConcurrentStreams {
            self.connections.command(.allow(streams: after.maxConcurrentStreams))
        }
    }
}
