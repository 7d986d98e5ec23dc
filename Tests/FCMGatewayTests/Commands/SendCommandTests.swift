import ArgumentParser
import GatewayTestKit
import NIOCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct SendCommandTests {
    private static func command(_ arguments: [String]) throws -> SendCommand {
        try #require(try FCMGatewayCommand.parseAsRoot(["send", "demo"] + arguments) as? SendCommand)
    }

    @Test(
        "The options form the message's body",
        arguments: [
            (["--token", "t"], #"{"token":"t"}"#),
            (["--token", "t", "--token", "u"], #"{"tokens":["t","u"]}"#),
            (["--topic", "news", "--dry-run"], #"{"dry_run":true,"topic":"news"}"#),
            (["--condition", "'a' in topics"], #"{"condition":"'a' in topics"}"#),
            (
                ["--token", "t", "--title", "T", "--body", "B/\"", "--priority", "high", "--ttl", "15m"],
                #"{"notification":{"body":"B/\"","title":"T"},"priority":"high","token":"t","ttl":900}"#
            ),
            (["--fid", "f"], #"{"fid":"f"}"#), (["--device-group", "g"], #"{"device_group":"g"}"#),
            (
                [
                    "--token", "t", "--image", "https://a/b.png", "--collapse-key", "k", "--restricted-package-name",
                    "p",
                    "--content-available", "--mutable-content",
                ],
                """
                {"collapse_key":"k","content_available":true,"mutable_content":true,\
                "notification":{"image":"https://a/b.png"},"restricted_package_name":"p","token":"t"}
                """
            ),
            (["--token", "t", "--data", "a=b=c", "--data", "e="], #"{"data":{"a":"b=c","e":""},"token":"t"}"#),
        ]
    )
    func body(arguments: [String], json: String) throws {
        let body = try Self.command(arguments).message.makeBody()
        #expect(String(buffer: body) == json)
    }

    @Test("Files supply tokens, or the whole body unchanged")
    func files() async throws {
        try await TemporaryDirectory.with { directory in
            let tokens = try directory.file("tokens", "t1\r\n\n  t2 \nt3")
            let body = try Self.command(["--tokens-file", tokens]).message.makeBody()
            #expect(String(buffer: body) == #"{"tokens":["t1","t2","t3"]}"#)
            let empty = try directory.file("empty", "\n\n")
            #expect(throws: CommandFailure("\(empty) holds no token")) {
                try Self.command(["--tokens-file", empty]).message.makeBody()
            }
            let raw = try directory.file("body.json", "{ not json")
            #expect(try Self.command(["--file", raw]).message.makeBody() == ByteBuffer(string: "{ not json"))
            #expect(throws: CommandFailure.self) {
                try Self.command(["--file", "\(directory.path)/none"]).message.makeBody()
            }
        }
    }

    @Test("One recipient's answer is printed member by member")
    func one() async throws {
        let reply = StubServer.Reply(body: #"{"id":"m1","status":"accepted","message_id":"0:1%3"}"#)
        try await StubServer.withClient(token: "fgw_a_b_c", { _ in reply }) { api, server in
            let body = ByteBuffer(string: #"{"token":"t"}"#)
            let output = try await Self.command(["--token", "t"]).perform(api, body: body)
            #expect(output.answer == "id:          m1\nstatus:      accepted\nmessage_id:  0:1%3")
            #expect(output.remark.isEmpty && !output.isRefusal)
            let request = try #require(server.requests.first)
            #expect(request.line == "POST /v1/tenants/demo/messages")
            #expect(request.headers["authorization"] == "Bearer fgw_a_b_c")
            #expect(request.body == #"{"token":"t"}"#)
        }
    }

    @Test("The Idempotency-Key header is sent only if its option is given", arguments: [nil, "order 4711"])
    func idempotencyKey(key: String?) async throws {
        let reply = StubServer.Reply(body: #"{"id":"m1","status":"accepted"}"#)
        try await StubServer.withClient({ _ in reply }) { api, server in
            let option = key.map { ["--idempotency-key", $0] } ?? []
            _ = try await Self.command(["--token", "t"] + option).perform(api, body: ByteBuffer())
            #expect(server.requests.first?.headers["idempotency-key"] == key)
        }
    }

    @Test("The answer for several recipients is a table, and a rejected recipient makes the verb fail")
    func several() async throws {
        let reply = StubServer.Reply(
            body: """
                {"id":"m1","accepted":1,"rejected":1,"results":[{"token":"a","status":"accepted","message_id":"0:1"},\
                {"token":"b","status":"rejected","code":"device_rate_exceeded","retryable":true,"retry_after":12}]}
                """
        )
        try await StubServer.withClient({ _ in reply }) { api, _ in
            let table = try await Self.command(["--token", "a"]).perform(api, body: ByteBuffer())
            let expected = CommandOutput(
                """
                STATUS    CODE                  RETRY_AFTER  MESSAGE_ID  TOKEN
                accepted                                     0:1         a
                rejected  device_rate_exceeded  12                       b
                """,
                remark: "message m1: 1 accepted, 1 rejected",
                isRefusal: true
            )
            #expect(table.answer == expected.answer && table.remark == expected.remark && table.isRefusal)
            let json = try await Self.command(["--token", "a", "--output", "json"]).perform(api, body: ByteBuffer())
            #expect(json.isRefusal)
            #expect(try JSONValue(parsing: json.answer).integer("accepted") == 1)
        }
    }

    @Test("The key comes from its file, then from the environment")
    func key() async throws {
        try await TemporaryDirectory.with { directory in
            let file = try directory.file("k", "fgw_file\n")
            let environment = ["GATEWAY_KEY": "fgw_variable"]
            #expect(
                try Self.command(["--topic", "n"]).service.key(environment: environment).revealed == "fgw_variable"
            )
            let command = try Self.command(["--topic", "n", "--key-file", file])
            #expect(try command.service.key(environment: environment).revealed == "fgw_file")
        }
    }
}
