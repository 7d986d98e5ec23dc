import ArgumentParser
import FCMModel
import Foundation
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

// MARK: The core's types as arguments

extension TenantID: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

extension UpstreamKind: ExpressibleByArgument {}

extension OperatorRole: ExpressibleByArgument {}

extension Scope: ExpressibleByArgument {}

extension LimitScope: ExpressibleByArgument {}

extension ClientName: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

extension Timestamp: ExpressibleByArgument {
    /// Accepts a time, or a date for the first moment of that day in UTC.
    package init?(argument: String) {
        self.init(rfc3339: argument.utf8.count == 10 ? "\(argument)T00:00:00Z" : argument)
    }
}

extension RatePolicy: ExpressibleByArgument {
    package init?(argument: String) { try? self.init(parsing: argument) }
}

extension AuditPublicKey: ExpressibleByArgument {
    /// Accepts the key in base64, or the path of a file with it.
    package init?(argument: String) {
        if let key = AuditPublicKey(base64: argument) {
            self = key
        } else if let text = try? String(contentsOfFile: argument, encoding: .utf8),
            let key = AuditPublicKey(base64: text)
        {
            self = key
        } else {
            return nil
        }
    }
}

/// A duration such as `90s`, `15m`, `24h` or `7d`.
struct DurationArgument: Sendable, Equatable, ExpressibleByArgument {
    let seconds: Int

    init(seconds: Int) {
        self.seconds = seconds
    }

    init?(argument: String) {
        guard let seconds = Int(secondsIn: argument) else { return nil }
        self.seconds = seconds
    }

    var defaultValueDescription: String {
        for (unit, length) in [("h", 3_600), ("m", 60)] where self.seconds > 0 && self.seconds % length == 0 {
            return "\(self.seconds / length)\(unit)"
        }
        return "\(self.seconds)s"
    }
}

// MARK: Options

/// The option of all verbs that print a list.
struct ListOptions: ParsableArguments {
    @Option(name: .long, help: "The maximum number of elements to print (default: all).") var limit: Int?

    func validate() throws {
        if let limit = self.limit, limit < 1 { throw ValidationError("--limit must be at least 1.") }
    }
}

/// The option of all verbs that read the configuration directly.
struct ConfigOptions: ParsableArguments {
    @Option(name: .long, help: "The YAML configuration file.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// The file and the environment, unchecked.
    func input(environment: [String: String] = ProcessInfo.processInfo.environment) -> ConfigurationInput {
        ConfigurationInput(file: self.config, environment: environment)
    }

    /// The configuration in force; prints its problems and throws `ExitCode.failure` if there are any.
    func load(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> GatewayConfiguration {
        do {
            return try self.input(environment: environment).configuration()
        } catch {
            FailureReport.write(error)
            throw ExitCode.failure
        }
    }
}

/// The options of all verbs that call the admin API.
struct AdminOptions: ParsableArguments {
    static let defaultURL = "http://127.0.0.1:8081"

    @Option(
        name: .customLong("admin-url"),
        help: "The admin listener's address (default: GATEWAY_ADMIN_URL, else http://127.0.0.1:8081)."
    )
    var url: BaseURL?

    @Option(
        name: .customLong("admin-token-file"),
        help: "The file that holds the admin token (default: GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE).",
        completion: .file()
    )
    var tokenFile: String?

    @OptionGroup var tls: TLSOptions
    @OptionGroup var output: OutputOptions

    func baseURL(environment: [String: String]) throws -> BaseURL {
        try self.url ?? BaseURL.inVariable("GATEWAY_ADMIN_URL", default: Self.defaultURL, environment)
    }

    func token(environment: [String: String]) throws -> Redacted<String> {
        let (option, variable) = ("--admin-token-file", "GATEWAY_ADMIN_TOKEN")
        return try BearerToken.find(file: self.tokenFile, option: option, variable: variable, environment)
    }
}

/// The address of the data listener, and a tenant's key for it.
struct ServiceOptions: ParsableArguments {
    @Option(name: .long, help: "The data listener's address.") var url: BaseURL?
    @Option(name: .long, help: "The file that holds the API key, or - for standard input.", completion: .file())
    var keyFile: String?
    @OptionGroup var tls: TLSOptions

    func key(environment: [String: String]) throws -> Redacted<String> {
        try BearerToken.find(file: self.keyFile, option: "--key-file", variable: "GATEWAY_KEY", environment)
    }

    /// Runs a body that calls the data listener, and prints the body's output. Exits with 1 if the output is a refusal.
    func call(_ body: (APIClient) async throws -> CommandOutput) async throws {
        let environment = ProcessInfo.processInfo.environment
        let url = try self.url ?? BaseURL.inVariable("GATEWAY_URL", default: "http://127.0.0.1:8080", environment)
        let key = try self.key(environment: environment)
        let tls = try self.tls.configuration(environment: environment)
        let directions = APIClient.Directions.data(keyFile: self.keyFile)
        let output = try await APIClient.with(url, token: key, directions: directions, tls: tls, body)
        try output.write()
        if output.isRefusal { throw ExitCode.failure }
    }
}

/// The option of verbs that ask for confirmation before they delete or reset something.
struct ConfirmationOptions: ParsableArguments {
    @Flag(name: .long, help: "Do not ask for confirmation.") var yes = false

    func confirm(_ question: String) throws {
        if !self.yes {
            try Self.ask(question, orTell: "\(question)\nThere is no terminal to ask on: give --yes to confirm.")
        }
    }

    /// Asks on the terminal, and throws unless the answer is yes. Without a terminal, throws the other text.
    static func ask(_ question: String, orTell text: String) throws {
        let environment = ProcessInfo.processInfo.environment
        guard Terminal(.standardInput, environment: environment).isTerminal,
            Terminal(.standardError, environment: environment).isTerminal
        else { throw ValidationError(text) }
        try FileHandle.standardError.write(contentsOf: Data("\(question) Type yes: ".utf8))
        guard readLine() == "yes" else { throw CommandFailure("nothing was changed") }
    }
}

/// A verb that calls the admin API.
protocol AdminVerb: AsyncParsableCommand {
    var admin: AdminOptions { get }

    /// Does the verb's work. Prints output with the closure.
    func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws
}

extension AdminVerb {
    var wantsJSON: Bool { self.admin.output.isJSON }

    mutating func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let verb = self
        let url = try verb.admin.baseURL(environment: environment)
        let token = try verb.admin.token(environment: environment)
        let tls = try verb.admin.tls.configuration(environment: environment)
        let directions = APIClient.Directions.admin(tokenFile: verb.admin.tokenFile)
        try await APIClient.with(url, token: token, directions: directions, tls: tls) { api in
            try await verb.perform(AdminClient(api)) { try $0.write() }
        }
    }
}

// MARK: Tokens and files of options

/// The token that a verb sends.
enum BearerToken {
    /// Finds a token: in the file that an option names, else in a variable, else in the file that a variable names.
    /// Throws `ValidationError` if there is no token, and `CommandFailure` if the token can't be used.
    static func find(
        file: String?,
        option: String,
        variable: String,
        _ environment: [String: String]
    ) throws -> Redacted<String> {
        let token: Redacted<String>
        if let file {
            token = try InputFile.readSecret(file)
        } else {
            do {
                guard let found = try SecretVariable.find(variable, in: environment) else {
                    throw ValidationError("No token: give \(option), or set \(variable) or \(variable)_FILE.")
                }
                token = found.value
            } catch let problems as ConfigurationProblems {
                throw CommandFailure(problems.description)
            }
        }
        // A newline is invalid in a header's value, and a blank would end the token.
        guard token.revealed.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure("the token may hold visible ASCII characters only")
        }
        return token
    }
}

/// Reads the file that an option names; `-` is standard input. A failure names the file, and never quotes its content.
enum InputFile {
    static func read(_ path: String) throws(CommandFailure) -> ByteBuffer {
        ByteBuffer(bytes: try self.data(path))
    }

    static func readJSON(_ path: String) throws(CommandFailure) -> JSONValue {
        let text = try self.read(path)
        do {
            return try JSONDocument(parsing: text, limits: .trusted).root
        } catch {
            throw CommandFailure("\(self.name(path)) holds no JSON")
        }
    }

    static func readSecret(_ path: String) throws(CommandFailure) -> Redacted<String> {
        let data = try self.data(path)
        do {
            return Redacted(try SecretVariable.secret(data, from: self.name(path)))
        } catch {
            throw CommandFailure(error.message)
        }
    }

    /// Reads a file's tokens, one per line. Throws if there are none.
    static func readTokens(_ path: String) throws(CommandFailure) -> [String] {
        guard let text = String(bytes: try self.data(path), encoding: .utf8) else {
            throw CommandFailure("\(path) is not UTF-8")
        }
        let tokens = text.split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
        guard !tokens.isEmpty else { throw CommandFailure("\(path) holds no token") }
        return tokens
    }

    static func name(_ path: String) -> String {
        path == "-" ? "standard input" : path
    }

    private static func data(_ path: String) throws(CommandFailure) -> Data {
        if path == "-" {
            do {
                return try FileHandle.standardInput.readToEnd() ?? Data()
            } catch {
                throw CommandFailure("standard input cannot be read")
            }
        }
        do {
            return try Data(contentsOfFile: path)
        } catch {
            throw CommandFailure("\(error)")
        }
    }
}
