/// Where messages go unless a tenant's credential names another server.
package struct UpstreamEndpoints: Sendable, Hashable {
    /// The server that takes legacy messages.
    package var legacy: String
    /// The server that takes v1 messages.
    package var v1: String

    /// Endpoints; by default Google's.
    package init(legacy: String = "https://fcm.googleapis.com", v1: String = "https://fcm.googleapis.com") {
        self.legacy = legacy
        self.v1 = v1
    }
}
