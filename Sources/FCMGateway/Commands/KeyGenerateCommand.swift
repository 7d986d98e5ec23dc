import ArgumentParser
import GatewayCore

/// `key generate`: makes a key without a gateway.
struct KeyGenerateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Make a key that no gateway knows yet, and print it.",
        discussion: """
            Needs no gateway. Keep it in a file that only you can read, and let gateways accept it by \
            key create --key-file or by key_file in what tenant apply reads:

            (umask 077; fcm-gateway key generate > shared.key)
            """
    )

    @OptionGroup var output: OutputOptions

    func run() throws {
        try Self.output(APIKey.generate(), json: self.output.output == .json).write()
    }

    /// The key alone, so that it can be sent to a file, or with its id.
    static func output(_ key: APIKey, json: Bool) throws -> CommandOutput {
        let text = key.secret.revealText()
        let object = JSONValue.object(["id": .string(key.id), "key": .string(text)])
        var output = CommandOutput(json ? try object.prettyText() : text)
        output.adviceIfLost = "No gateway knows the key: make another"
        return output
    }
}
