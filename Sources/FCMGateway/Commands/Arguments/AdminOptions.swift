import ArgumentParser
import GatewayService

/// The options of every verb that speaks the admin API.
struct AdminOptions: ParsableArguments {
    /// The admin listener's default address.
    static let defaultURL = "http://127.0.0.1:8081"

    /// The admin listener's address; nil takes the environment's.
    @Option(
        name: .customLong("admin-url"),
        help: "The admin listener's address (default: GATEWAY_ADMIN_URL, else http://127.0.0.1:8081)."
    )
    var url: BaseURL?

    /// The file with the admin token; nil takes the environment's.
    @Option(
        name: .customLong("admin-token-file"),
        help: "The file that holds the admin token (default: GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE).",
        completion: .file()
    )
    var tokenFile: String?

    /// How the answer is printed.
    @OptionGroup var output: OutputOptions

    /// The address in force.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The option's address, else the variable's, else the default.
    /// - Throws: `ValidationError` when the variable holds no address.
    func baseURL(environment: [String: String]) throws -> BaseURL {
        try self.url ?? BaseURL.fromVariable("GATEWAY_ADMIN_URL", default: Self.defaultURL, environment: environment)
    }

    /// The token in force.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The option's token, else the environment's.
    /// - Throws: `ValidationError` when there is none, `CommandFailure` when it cannot be read.
    func token(environment: [String: String]) throws -> Redacted<String> {
        try BearerToken.find(
            file: self.tokenFile,
            option: "--admin-token-file",
            variable: "GATEWAY_ADMIN_TOKEN",
            environment: environment
        )
    }
}
