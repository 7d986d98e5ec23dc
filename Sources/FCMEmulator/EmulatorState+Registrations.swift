import Synchronization

/// Registrations that ended, and canonical ones.
extension EmulatorState {
    /// What is known of registrations at this moment.
    var registrations: Registrations {
        self.contents.withLock { contents in
            var registrations = contents.registrations
            registrations.unregisteredPercent = contents.settings.unregisteredPercent
            return registrations
        }
    }

    /// Ends registrations, or makes them good again.
    ///
    /// - Returns: how many are ended now.
    func setRegistration(of tokens: [String], isEnded: Bool, canonical: String?) -> Int {
        self.contents.withLock { contents in
            contents.registrations.set(tokens, isEnded: isEnded, canonical: canonical)
            return contents.registrations.endedCount
        }
    }

    /// Forgets what was set, so that tokens' own texts decide.
    func forgetRegistrations() {
        self.contents.withLock { $0.registrations = Registrations() }
    }
}
