/// Devices whose registration ended or was replaced.
extension FCMEmulator {
    /// Ends the registrations of tokens: messages to them are answered with `NotRegistered`, or `UNREGISTERED` in v1.
    package func unregister(_ tokens: [String]) {
        _ = self.state.setRegistration(of: tokens, isEnded: true, canonical: nil)
    }

    /// Makes registrations good again.
    ///
    /// - Parameters:
    ///   - tokens: whose.
    ///   - canonical: the token by which FCM knows the device now, named in answers of the legacy protocol; nil for none.
    package func register(_ tokens: [String], canonical: String? = nil) {
        _ = self.state.setRegistration(of: tokens, isEnded: false, canonical: canonical)
    }
}
