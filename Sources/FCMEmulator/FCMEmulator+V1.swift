/// What the v1 protocol needs: service accounts, access tokens, and HTTP/2.
extension FCMEmulator {
    /// Makes a service account whose assertions are accepted; waits until the emulator listens.
    ///
    /// - Parameters:
    ///   - projectID: project of the account, for which it may send.
    ///   - clientEmail: address of the account; made from the project if nil.
    /// - Returns: the file a sender is to be given; its `token_uri` is the emulator's.
    /// - Throws: what prevented binding the port or making a key.
    package func makeServiceAccount(
        projectID: String,
        clientEmail: String? = nil
    ) async throws -> ServiceAccountFile {
        let tokenURI = try await self.baseURL() + TokenEndpoint.path
        let file = try ServiceAccountFile(making: projectID, clientEmail: clientEmail, tokenURI: tokenURI)
        try self.addServiceAccount(file)
        return file
    }

    /// Accepts the assertions of an account made elsewhere, in place of one with the same address.
    ///
    /// - Throws: ``EmulatorError/badServiceAccount(_:)`` when its key cannot be used.
    package func addServiceAccount(_ file: ServiceAccountFile) throws(EmulatorError) {
        self.state.add(try ServiceAccount(file))
    }

    /// Forgets an account; its assertions are refused, access tokens issued to it stay valid.
    ///
    /// - Parameter clientEmail: address of the account.
    /// - Returns: whether it was known.
    @discardableResult
    package func removeServiceAccount(clientEmail: String) -> Bool {
        self.state.removeAccount(email: clientEmail)
    }

    /// Makes every access token issued so far invalid.
    package func revokeAccessTokens() {
        self.state.revokeTokens()
    }

    /// How it behaves now.
    package var settings: EmulatorSettings { self.state.settings }

    /// Changes how it behaves; open HTTP/2 connections are told of a new limit of streams.
    package func updateSettings(_ change: (inout EmulatorSettings) -> Void) {
        self.state.update(change)
    }

    /// Connections and streams, open now and at most.
    package var connectionReport: ConnectionReport { self.state.connections.report }

    /// Says GOAWAY on every HTTP/2 connection: streams that are open are answered, then the connection closes.
    ///
    /// - Returns: how many connections were told.
    @discardableResult
    package func goAway() -> Int {
        self.state.connections.command(.goAway(refusing: nil))
    }
}
