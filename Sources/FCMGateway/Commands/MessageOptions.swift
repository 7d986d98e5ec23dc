import ArgumentParser
import Foundation

/// The options that make a message, or name a file that holds one.
struct MessageOptions: ParsableArguments {
    /// How soon a message is delivered to a sleeping device.
    enum Priority: String, CaseIterable, ExpressibleByArgument {
        /// When it suits the device.
        case normal
        /// At once.
        case high
    }

    /// One member of a message's data, `name=value`.
    struct DataMember: ExpressibleByArgument, Equatable {
        /// The member's name.
        let name: String
        /// The member's value; may hold further equals signs.
        let value: String

        /// Accepts `name=value` with a name.
        init?(argument: String) {
            guard let separator = argument.firstIndex(of: "="), separator != argument.startIndex else { return nil }
            self.name = String(argument[..<separator])
            self.value = String(argument[argument.index(after: separator)...])
        }
    }

    /// FCM's longest time to live: 28 days.
    static let maxTTLSeconds = 2_419_200

    @Option(name: .customLong("token"), help: "A device's registration token; repeat it for several.")
    var tokens: [String] = []
    @Option(name: .long, help: "A file with one token a line, or - for standard input.", completion: .file())
    var tokensFile: String?
    @Option(name: .long, help: "A topic's name, without /topics/.") var topic: String?
    @Option(name: .long, help: "A topic expression, such as \"'a' in topics && 'b' in topics\".")
    var condition: String?
    @Option(name: .long, help: "The notification's title.") var title: String?
    @Option(name: .long, help: "The notification's text.") var body: String?
    @Option(name: .customLong("data"), help: "A member of the data, name=value; may be repeated.")
    var data: [DataMember] = []
    @Option(name: .long, help: "How soon to deliver.") var priority: Priority?
    @Option(name: .long, help: "How long FCM keeps it for a device that is off, such as 0s, 15m or 28d.")
    var ttl: DurationArgument?
    @Flag(name: .long, help: "Check everything and deliver nothing.") var dryRun = false
    @Option(
        name: .long,
        help: "A file with the whole JSON body instead, or - for standard input.",
        completion: .file()
    )
    var file: String?

    /// Refuses options that contradict each other.
    func validate() throws {
        let targets = [!self.tokens.isEmpty, self.tokensFile != nil, self.topic != nil, self.condition != nil]
        let hasContent =
            self.title != nil || self.body != nil || !self.data.isEmpty || self.priority != nil || self.ttl != nil
        if self.file != nil {
            if targets.contains(true) || hasContent || self.dryRun {
                throw ValidationError("--file holds the whole message; give no other part of it.")
            }
            return
        }
        if targets.count(where: \.self) != 1 {
            throw ValidationError("Give exactly one of --token, --tokens-file, --topic, --condition and --file.")
        }
        if Set(self.data.map(\.name)).count != self.data.count {
            throw ValidationError("--data names a member twice.")
        }
        if let ttl = self.ttl, ttl.seconds > Self.maxTTLSeconds {
            throw ValidationError("--ttl must be at most 28d.")
        }
    }

    /// The JSON body to send; a file's content is sent as it is, so that the gateway judges it.
    ///
    /// - Throws: `CommandFailure` when a file cannot be read.
    func makeBody() throws -> Data {
        if let file = self.file {
            return try InputFile.read(file)
        }
        var members: [String: JSONValue] = [:]
        if let tokensFile = self.tokensFile {
            let tokens = try Self.tokens(in: InputFile.read(tokensFile))
            guard !tokens.isEmpty else {
                throw CommandFailure("\(tokensFile) holds no token")
            }
            members["tokens"] = .array(tokens.map(JSONValue.string))
        } else if self.tokens.count == 1 {
            members["token"] = .string(self.tokens[0])
        } else if !self.tokens.isEmpty {
            members["tokens"] = .array(self.tokens.map(JSONValue.string))
        }
        members["topic"] = self.topic.map(JSONValue.string)
        members["condition"] = self.condition.map(JSONValue.string)
        var notification: [String: JSONValue] = [:]
        notification["title"] = self.title.map(JSONValue.string)
        notification["body"] = self.body.map(JSONValue.string)
        if !notification.isEmpty {
            members["notification"] = .object(notification)
        }
        if !self.data.isEmpty {
            members["data"] = .object(
                Dictionary(uniqueKeysWithValues: self.data.map { ($0.name, JSONValue.string($0.value)) })
            )
        }
        members["priority"] = self.priority.map { .string($0.rawValue) }
        members["ttl"] = self.ttl.map { .integer($0.seconds) }
        if self.dryRun {
            members["dry_run"] = .bool(true)
        }
        return try JSONValue.object(members).encoded()
    }

    private static func tokens(in data: Data) -> [String] {
        String(decoding: data, as: UTF8.self)
            .split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
    }
}
