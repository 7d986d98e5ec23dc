import ArgumentParser
import Foundation

/// A verb that speaks the admin API.
protocol AdminVerb: AsyncParsableCommand {
    /// Where the gateway is, and how to print.
    var admin: AdminOptions { get }

    /// Does the work.
    ///
    /// - Parameters:
    ///   - client: Speaks the admin API.
    ///   - print: Takes what the verb has to say.
    /// - Throws: `APIError`, `CommandFailure` or `ValidationError`.
    func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws
}

extension AdminVerb {
    /// Whether the answer is wanted as JSON.
    var wantsJSON: Bool {
        self.admin.output.output == .json
    }

    /// Connects, does the work and prints.
    mutating func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let verb = self
        let baseURL = try verb.admin.baseURL(environment: environment)
        let token = try verb.admin.token(environment: environment)
        try await APIClient.withHTTPClient { http in
            let client = AdminClient(
                APIClient(
                    http: http,
                    baseURL: baseURL,
                    token: token,
                    directions: .admin(tokenFile: verb.admin.tokenFile)
                )
            )
            try await verb.perform(client) { try $0.write() }
        }
    }
}
