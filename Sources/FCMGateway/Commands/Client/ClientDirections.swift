/// How an operator sets where a listener is and what it is shown, said where a call fails because of them.
struct ClientDirections: Sendable {
    /// About the address.
    let address: String
    /// About the token.
    let token: String

    /// For the admin listener.
    ///
    /// - Parameter file: The file that the token came from by an option; nil for the environment.
    /// - Returns: What to say.
    static func admin(tokenFile file: String?) -> ClientDirections {
        ClientDirections(
            address: "Is the gateway running? Its admin listener's address is set by --admin-url or GATEWAY_ADMIN_URL.",
            token: "The admin token from \(file ?? "the environment") is not this gateway's; it is set by "
                + "--admin-token-file, GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE."
        )
    }

    /// For the data listener.
    ///
    /// - Parameter file: The file that the key came from by an option; nil for the environment.
    /// - Returns: What to say.
    static func data(keyFile file: String?) -> ClientDirections {
        ClientDirections(
            address: "Is the gateway running? Its data listener's address is set by --url or GATEWAY_URL.",
            token:
                "The API key from \(file ?? "the environment") is not valid here; it is set by --key-file or GATEWAY_KEY."
        )
    }
}
