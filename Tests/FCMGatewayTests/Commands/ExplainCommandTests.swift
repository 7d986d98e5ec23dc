import ArgumentParser
import NIOCore
import Testing

@testable import FCMGateway

struct ExplainCommandTests {
    private static let answer = """
        {"upstream":"v1","request_count":12,"payload":{"bytes":2,"limit":4096},
         "requests":[{"method":"POST","url":"https://fcm.example/v1/projects/p/messages:send",
                      "headers":{"Authorization":"Bearer ***","Content-Type":"application/json; charset=UTF-8"},
                      "body":{"message":{"token":"t"}}}],
         "fields":[{"pointer":"/token","becomes":["/message/token"]},{"pointer":"/mutable_content","becomes":[]}],
         "warnings":[{"pointer":"/mutable_content","detail":"It has no effect"},{"pointer":"","detail":"Beware"}],
         "limits":{"tenant":[{"scope":"tenant","rate":9,"per_s":1,"burst":9,"remaining":8,"reset_s":0}],
                   "targets":[[{"scope":"device","rate":1,"per_s":60,"burst":2,"remaining":2,"reset_s":0}],[]]}}
        """

    private static func command(_ arguments: String...) throws -> ExplainCommand {
        try #require(try FCMGatewayCommand.parseAsRoot(["explain", "demo"] + arguments) as? ExplainCommand)
    }

    @Test(
        "The body's form follows from its recipient field unless --form is given",
        arguments: [
            (#"{"token":"t"}"#, [], "/v1/tenants/demo/messages/explain"),
            (#"{"to":"t"}"#, [], "/v1/tenants/demo/messages/explain?form=legacy"),
            (#"{"registration_ids":["t"]}"#, [], "/v1/tenants/demo/messages/explain?form=legacy"),
            (#"{"condition":"'a' in topics"}"#, [], "/v1/tenants/demo/messages/explain"),
            (#"{"condition":"'a' in topics"}"#, ["--form", "legacy"], "/v1/tenants/demo/messages/explain?form=legacy"),
            (#"{"to":"t"}"#, ["--form", "rest"], "/v1/tenants/demo/messages/explain"),
            ("no json", [], "/v1/tenants/demo/messages/explain"),
        ]
    )
    func form(body: String, options: [String], path: String) async throws {
        let arguments = ["explain", "demo"] + options
        let command = try #require(try FCMGatewayCommand.parseAsRoot(arguments) as? ExplainCommand)
        try await StubServer.withClient({ _ in .init(body: Self.answer) }) { api, server in
            _ = try await command.perform(api, body: ByteBuffer(string: body))
            #expect(server.requests.map(\.line) == ["POST \(path)"])
            #expect(server.requests.map(\.body) == [body])
        }
    }

    @Test("explain prints requests, fields and limits, and warnings as remarks")
    func text() async throws {
        try await StubServer.withClient({ _ in .init(body: Self.answer) }) { api, _ in
            let output = try await Self.command().perform(api, body: ByteBuffer(string: "{}"))
            #expect(
                output
                    == CommandOutput(
                        """
                        POST https://fcm.example/v1/projects/p/messages:send
                        Authorization: Bearer ***
                        Content-Type: application/json; charset=UTF-8
                        {
                          "message" : {
                            "token" : "t"
                          }
                        }

                        FIELD             BECOMES
                        /token            /message/token
                        /mutable_content  (not sent)

                        SCOPE   POLICY   REMAINING  RESET_S
                        tenant  9/1s:9   8          0
                        device  1/60s:2  2          0
                        """,
                        remark: """
                            warning: /mutable_content: It has no effect
                            warning: Beware
                            v1: 12 requests, of which the first 1 are shown; payload 2 of 4096 bytes
                            """
                    )
            )
        }
    }

    @Test("explain fails for a message that would be refused")
    func refused() async throws {
        let answer = #"{"upstream":"legacy","refused":{"code":"message_too_big","detail":"5000 bytes"},"requests":[]}"#
        try await StubServer.withClient({ _ in .init(body: answer) }) { api, _ in
            let output = try await Self.command().perform(api, body: ByteBuffer(string: "{}"))
            #expect(output.isRefusal)
            #expect(output.remark.hasPrefix("refused: message_too_big: 5000 bytes\n"))
            let json = try await Self.command("--output", "json").perform(api, body: ByteBuffer(string: "{}"))
            #expect(json.isRefusal)
            #expect(json.answer.contains(#""code" : "message_too_big""#))
        }
    }
}
