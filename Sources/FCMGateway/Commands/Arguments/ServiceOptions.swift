import ArgumentParser
import Foundation
import GatewayService

/// Where the data listener is, and the key to show it, as a tenant's service has them.
struct ServiceOptions: ParsableArguments {
    /// The data listener's default address.
    static let defaultURL = "http://127.0.0.1:8080"

    @Option(name: .long, help: "The data listener's address.") var url: BaseURL?
    @Option(name: .long, help: "The file that holds the API key, or - for standard input.", completion: .file())
    var keyFile: String?

    /// The API key in force.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The option's key, else the environment's.
    /// - Throws: `ValidationError` when there is none, `CommandFailure` when it cannot be read.
    func key(environment: [String: String]) throws -> Redacted<String> {
        try BearerToken.find(
            file: self.keyFile,
            option: "--key-file",
            variable: "GATEWAY_KEY",
            environment: environment
        )
    }

    /// Runs a body with a client of the data listener.
    func withClient<Result>(_ body: (APIClient) async throws -> Result) async throws -> Result {
        let environment = ProcessInfo.processInfo.environment
        let baseURL =
            try self.url
            ?? BaseURL.fromVariable("GATEWAY_URL", default: Self.defaultURL, environment: environment)
        let key = try self.key(environment: environment)
        return try await APIClient.withHTTPClient { http in
            try await body(
                APIClient(http: http, baseURL: baseURL, token: key, directions: .data(keyFile: self.keyFile))
            )
        }
    }
}
