import ArgumentParser
import GatewayCore

/// A tenant's name: `[a-z0-9][a-z0-9-]{0,62}`.
struct TenantArgument: Sendable, Equatable, ExpressibleByArgument {
    /// The name.
    let name: String

    /// Accepts a well-formed name.
    init?(argument: String) {
        guard TenantID(argument) != nil else { return nil }
        self.name = argument
    }
}
