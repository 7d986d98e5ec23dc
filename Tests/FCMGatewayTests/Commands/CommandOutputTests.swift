import Testing

@testable import FCMGateway
@testable import GatewayService

struct CommandOutputTests {
    @Test("A good configuration is said to be good, with its warnings as remarks")
    func configCheck() throws {
        let configuration = try ConfigurationInput(file: nil as String?, environment: [:]).configuration()
        #expect(
            ConfigCommand.Check.output(configuration)
                == CommandOutput(
                    "the configuration is good",
                    remark: """
                        warning: GATEWAY_MASTER_KEY: is not set, nor is GATEWAY_MASTER_KEY_FILE; \
                        serve does not start without it
                        warning: GATEWAY_ADMIN_TOKEN: is not set, nor is GATEWAY_ADMIN_TOKEN_FILE; \
                        serve does not start without it
                        """
                )
        )
    }

    @Test("A table's colours change neither its text nor its columns")
    func table() throws {
        let rows = [["status": "accepted", "token": "a"], ["status": "rejected", "token": "b"]]
            .map { JSONValue.object($0.mapValues(JSONValue.string)) }
        let table = TextTable(columns: ["status", "token"], objects: rows)
        #expect(table.text == "STATUS    TOKEN\naccepted  a\nrejected  b")
        #expect(
            table.styled.coloured == "STATUS    TOKEN\n\u{1B}[32maccepted\u{1B}[0m  a\n\u{1B}[31mrejected\u{1B}[0m  b"
        )
        // An answer can't bring a colour of its own.
        let hostile = TextTable(columns: ["status"], objects: [.object(["status": "\u{1B}[31mx"])])
        #expect(hostile.styled.coloured == "STATUS\n\\u{1b}[31mx")
    }
}
