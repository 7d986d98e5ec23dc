package import GatewayCore

/// Exchanges a service account's signature for an access token.
package protocol TokenExchange: Sendable {
    /// Asks once; nothing is retried.
    func issue(for credential: ServiceAccountCredential) async -> Result<IssuedToken, TokenFailure>

    /// Closes what it holds; later calls fail.
    func shutdown() async
}
