/// Where the emulator listens, whom it lets in and how much it remembers.
package struct EmulatorConfiguration: Sendable {
    /// Address to bind.
    package var host: String

    /// TCP port to bind; 0 lets the system choose, see ``FCMEmulator/boundPort()``.
    package var port: Int

    /// Legacy server keys that are let in; while there are none, every key that is not empty is let in.
    package var serverKeys: Set<String>

    /// Certificate and key the port is served with, over TLS; nil for plain text.
    ///
    /// Either way HTTP/2 and HTTP/1.1 are spoken.
    package var certificate: EmulatorCertificate?

    /// Service accounts whose assertions are accepted from the start; see also
    /// ``FCMEmulator/makeServiceAccount(projectID:clientEmail:)``.
    package var serviceAccounts: [ServiceAccountFile]

    /// How it behaves at first, and again after ``FCMEmulator/reset()``.
    package var settings: EmulatorSettings

    /// Largest request body read, in bytes; a larger one is answered with status 413.
    package var maxBodyBytes: Int

    /// Journal entries kept; the oldest are dropped first.
    package var maxJournalEntries: Int

    /// Bytes of request bodies the journal may hold; the oldest entries are dropped first.
    package var maxJournalBytes: Int

    /// Deliveries kept; the oldest are dropped first.
    package var maxDeliveries: Int

    /// Creates a configuration.
    ///
    /// - Parameters:
    ///   - host: address to bind.
    ///   - port: TCP port, 0 for one the system chooses.
    ///   - serverKeys: legacy server keys that are let in; empty for any.
    ///   - certificate: for TLS, nil for none.
    ///   - serviceAccounts: accounts known from the start.
    ///   - settings: how it behaves at first.
    ///   - maxBodyBytes: largest request body, in bytes, at least 1.
    ///   - maxJournalEntries: journal entries kept, at least 1.
    ///   - maxJournalBytes: bytes of request bodies kept in the journal.
    ///   - maxDeliveries: deliveries kept, at least 1.
    package init(
        host: String = "127.0.0.1",
        port: Int = 8085,
        serverKeys: Set<String> = [],
        certificate: EmulatorCertificate? = nil,
        serviceAccounts: [ServiceAccountFile] = [],
        settings: EmulatorSettings = EmulatorSettings(),
        maxBodyBytes: Int = 4 * 1024 * 1024,
        maxJournalEntries: Int = 10_000,
        maxJournalBytes: Int = 64 * 1024 * 1024,
        maxDeliveries: Int = 10_000
    ) {
        self.host = host
        self.port = port
        self.serverKeys = serverKeys
        self.certificate = certificate
        self.serviceAccounts = serviceAccounts
        self.settings = settings
        self.maxBodyBytes = maxBodyBytes
        self.maxJournalEntries = maxJournalEntries
        self.maxJournalBytes = maxJournalBytes
        self.maxDeliveries = maxDeliveries
    }
}
