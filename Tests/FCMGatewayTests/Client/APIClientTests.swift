import GatewayTestKit
import NIOCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct APIClientTests {
    private static let problem = """
        {"type":"/problems/invalid_field","title":"A field is invalid","status":422,"code":"invalid_field",\
        "detail":"display_name is too long","retryable":false,"retry_after":7,\
        "errors":[{"pointer":"/display_name","detail":"at most 100 characters"}]}
        """

    @Test("A call carries the token, and the body as JSON")
    func call() async throws {
        try await StubServer.withClient({ _ in .init(body: #"{"a":[1,null,"x",true,2.5]}"#) }) { api, server in
            let answer = try await AdminClient(api).call(.put, ["tenants", "a b"], body: ByteBuffer(string: "{}"))
            #expect(answer?.canonicalText == #"{"a":[1,null,"x",true,2.5]}"#)
            let request = try #require(server.requests.first)
            #expect(request.line == "PUT /admin/v1/tenants/a%20b")
            #expect(request.headers["authorization"] == "Bearer an-admin-token-of-tests")
            #expect(request.headers["content-type"] == "application/json")
            #expect(request.body == "{}")
        }
    }

    @Test("A list is read page by page to its end or to the limit")
    func pages() async throws {
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { request in
            if request.uri.contains("cursor=p2") { return .init(body: #"{"tenants":[5],"next_cursor":"p%3"}"#) }
            if request.uri.contains("cursor=p%253") { return .init(body: #"{"tenants":[6,7]}"#) }
            return .init(body: #"{"tenants":[1,2,3,4],"next_cursor":"p2"}"#)
        }
        try await StubServer.withClient(answer) { api, server in
            let client = AdminClient(api)
            let all = try await client.list(["tenants"], member: "tenants")
            #expect(all.map(\.cell) == (1...7).map(String.init))
            #expect(
                server.requests.map(\.line) == [
                    "GET /admin/v1/tenants?limit=500", "GET /admin/v1/tenants?limit=500&cursor=p2",
                    "GET /admin/v1/tenants?limit=500&cursor=p%253",
                ]
            )
            let five = try await client.list(["tenants"], member: "tenants", limit: 5)
            #expect(five.map(\.cell) == (1...5).map(String.init))
            #expect(
                server.requests.suffix(2).map(\.line) == [
                    "GET /admin/v1/tenants?limit=5", "GET /admin/v1/tenants?limit=1&cursor=p2",
                ]
            )
            let three = try await client.list(["tenants"], member: "tenants", limit: 3)
            #expect(three.count == 3)
        }
    }

    @Test("A repeated cursor fails, and so does an answer without the list")
    func badPages() async throws {
        try await StubServer.withClient({ _ in .init(body: #"{"keys":[],"next_cursor":"x"}"#) }) { api, _ in
            await #expect(throws: CommandFailure("the gateway repeated a page's cursor")) {
                try await AdminClient(api).list(["k"], member: "keys")
            }
            await #expect(throws: CommandFailure(#"the gateway's answer has no list "tenants""#)) {
                try await AdminClient(api).list(["k"], member: "tenants")
            }
        }
    }

    @Test("A refusal shows code, detail, fields and the request's id")
    func refusal() async throws {
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { _ in
            .init(
                status: 422,
                headers: ["X-Request-ID": "r-1", "Content-Type": "application/problem+json"],
                body: Self.problem
            )
        }
        try await StubServer.withClient(answer) { api, _ in
            let refusal = await #expect(throws: APIError.self) { try await AdminClient(api).call(.get, ["tenants"]) }
            #expect(refusal?.code == "invalid_field")
            #expect(
                refusal?.description == """
                    invalid_field: display_name is too long (HTTP 422)
                      /display_name: at most 100 characters
                    retry after: 7 s
                    request id: r-1
                    """
            )
        }
    }

    @Test(
        "Each error of a problem is printed once, with its pointer or byte offset if it has one",
        arguments: [
            (
                #"{"code":"invalid_target","detail":"Name one","errors":[{"pointer":"","detail":"Name one"}]}"#,
                "invalid_target: Name one (HTTP 422)"
            ),
            (
                #"{"code":"a","detail":"b","errors":[{"pointer":"/to","detail":"b"},{"pointer":"","detail":"c"}]}"#,
                "a: b (HTTP 422)\n  /to: b\n  c"
            ),
            (#"{"code":"a","detail":"b","offset":41}"#, "a: b (HTTP 422)\n  at byte 41 of the body"),
            (
                #"{"code":"a","detail":"b","offset":9,"pointer":"/ttl"}"#,
                "a: b (HTTP 422)\n  at byte 9 of the body, in /ttl"
            ),
        ]
    )
    func wholeBodies(problem: String, text: String) async throws {
        try await StubServer.withClient({ _ in .init(status: 422, body: problem) }) { api, _ in
            let refusal = await #expect(throws: APIError.self) { try await api.call(.put, ["x"]) }
            #expect(refusal?.description == text)
        }
    }

    @Test(
        "An answer without problem details fails as not the gateway's, and no redirect is followed",
        arguments: [
            (502, "<html>", "HTTP 502 without problem details; is this the gateway's address?"),
            (301, "", "HTTP 301 without problem details; is this the gateway's address?"),
        ]
    )
    func strangers(status: Int, body: String, message: String) async throws {
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { _ in
            .init(status: status, headers: ["Location": "/elsewhere"], body: body)
        }
        try await StubServer.withClient(answer) { api, server in
            let refusal = await #expect(throws: APIError.self) { try await api.call(.get, ["x"]) }
            #expect(refusal?.description == message)
            #expect(server.requests.count == 1)
        }
    }

    @Test("A success without JSON fails; a success without content returns nil")
    func success() async throws {
        let answer: @Sendable (StubServer.Request) -> StubServer.Reply = { request in
            request.method == "GET" ? .init(body: "hi") : .init(status: 204)
        }
        try await StubServer.withClient(answer) { api, _ in
            await #expect(throws: CommandFailure.self) { try await api.call(.get, ["x"]) }
            let nothing = try await api.call(.delete, ["x"])
            #expect(nothing == nil)
        }
    }

    @Test("A refused connection is reported with the address")
    func unreachable() async throws {
        try await ClosedPort.with { port in
            let address = "http://127.0.0.1:\(port)"
            let url = try #require(BaseURL(address))
            let failure = await #expect(throws: CommandFailure.self) {
                try await APIClient.with(url, token: Redacted("t")) { try await $0.call(.get, ["x"]) }
            }
            #expect(failure?.message == "no answer from \(address): the connection was refused")
        }
    }
}
