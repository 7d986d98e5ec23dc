import NIOCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct CommandOutputTests {
    @Test("config check accepts a valid configuration and prints its warnings as remarks")
    func configCheck() throws {
        let configuration = try ConfigurationInput(file: nil as String?, environment: [:]).configuration()
        #expect(
            ConfigCommand.Check.output(configuration.warnings)
                == CommandOutput(
                    "the configuration is good",
                    remark: """
                        warning: GATEWAY_MASTER_KEY: is not set, nor is GATEWAY_MASTER_KEY_FILE; \
                        serve does not start without it. fcm-gateway init makes one
                        warning: GATEWAY_ADMIN_TOKEN: is not set, nor is GATEWAY_ADMIN_TOKEN_FILE; \
                        serve does not start without it, unless the store has a token of the role admin. \
                        fcm-gateway init makes one
                        warning: http.host: API keys travel in the clear on 0.0.0.0; set http.tls.certificateFile, or \
                        listen on 127.0.0.1 behind a proxy that speaks TLS
                        """
                )
        )
    }

    @Test("A table's colours change neither its text nor its columns")
    func table() throws {
        let rows = try [#"{"status":"accepted","token":"a"}"#, #"{"status":"rejected","token":"b"}"#]
            .map { try JSONValue(parsing: $0) }
        let table = TextTable(columns: ["status", "token"], objects: rows)
        #expect(table.text == "STATUS    TOKEN\naccepted  a\nrejected  b")
        #expect(
            table.styled.coloured == "STATUS    TOKEN\n\u{1B}[32maccepted\u{1B}[0m  a\n\u{1B}[31mrejected\u{1B}[0m  b"
        )
        // An answer can't add colours.
        let hostile = TextTable(columns: ["status"], objects: [try JSONValue(parsing: #"{"status":"\u001b[31mx"}"#)])
        #expect(hostile.styled.coloured == "STATUS\n\\u{1b}[31mx")
    }

    @Test("JSON is printed with sorted members, unchanged numbers and escaped control characters")
    func json() {
        let text = #"{"b":[1.50,{"d":"\u001b/","c":null}],"a":{},"e":[]}"#
        #expect(
            CommandOutput(json: ByteBuffer(string: text)).answer == #"""
                {
                  "a" : {

                  },
                  "b" : [
                    1.50,
                    {
                      "c" : null,
                      "d" : "\u001b/"
                    }
                  ],
                  "e" : [

                  ]
                }
                """#
        )
    }
}
