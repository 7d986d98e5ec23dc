import NIOCore
import StrictJSON
import Testing
import VectorTestKit

@testable import FCMModel

struct GroupVectorTests {
    /// Decided by the credential, the sender id or the method, not by body or query.
    private static let routeVectors = ["GRP-032", "GRP-033", "GRP-035"]

    @Test(
        "Requests are decoded and encoded as in the vectors",
        arguments: try Vector.read("device-groups", where: "kind", is: "request")
    )
    func requests(vector: Vector) throws {
        var members = vector.members
        let method = try members.take("method").text()
        _ = try members.take("auth")
        var headers = try members.take("headers").members()
        let contentType = try headers.takeIfPresent("Content-Type")?.text() ?? "application/json"
        let body = (members.takeIfPresent("raw_body") ?? members.takeIfPresent("body"))?.body() ?? ByteBuffer()
        let query = ByteBuffer(string: try members.takeIfPresent("query")?.text() ?? "")
        var expect = try members.take("expect").members()
        try members.finish()
        let upstream = expect.takeIfPresent("upstream")
        let status = try expect.takeIfPresent("status")?.integer()
        let replyBody = expect.takeIfPresent("body")
        #expect((try expect.take("action").text() == "forward") == (upstream != nil))
        try expect.finish()
        guard !Self.routeVectors.contains(vector.id) else { return }
        do {
            let request =
                method == "GET"
                ? try GroupRequestDecoder.decode(query: query)
                : try GroupRequestDecoder.decode(body, contentType: contentType)
            try self.compare(request, try #require(upstream, "it is not refused"))
        } catch let refusal as Refusal {
            #expect(upstream == nil, "\(refusal)")
            let reply = GroupReplyWriter.reply(to: refusal)
            #expect(reply.status == status)
            if let replyBody { #expect(replyBody.mismatches(in: try VectorJSON(parsing: reply.body)) == []) }
        }
    }

    private func compare(_ request: GroupRequest, _ upstream: VectorJSON) throws {
        var upstream = try upstream.members()
        let method = try upstream.take("method").text()
        _ = try upstream.take("headers")
        let path = GroupRequestEncoder.path(of: request)
        #expect(path.prefix { $0 != "?" } == (try upstream.take("path").text()))
        if let body = upstream.takeIfPresent("body") {
            #expect(method == "POST")
            #expect(body.mismatches(in: try VectorJSON(parsing: GroupRequestEncoder.body(of: request))) == [])
        } else {
            let name = try upstream.take("query").object { try $0.take("notification_key_name").text() }
            #expect(method == "GET")
            #expect(GroupRequestEncoder.body(of: request).readableBytes == 0)
            // The decoder reads it back; another test covers the escapes.
            let written = ByteBuffer(string: String(path.drop { $0 != "?" }.dropFirst()))
            #expect(try GroupRequestDecoder.decode(query: written) == .lookUp(name: name))
        }
        try upstream.finish()
    }

    @Test(
        "Responses are read and passed on as in the vectors",
        arguments: try Vector.read("device-groups", where: "kind", is: "response")
    )
    func responses(vector: Vector) throws {
        var members = vector.members
        let now = try members.take("now").integer()
        let answer = try members.take("upstream")
            .object { try $0.takeIfPresent("transport") == nil ? UpstreamResponse(&$0) : nil }
        var expect = try members.take("expect").members()
        try members.finish()
        let result =
            answer.map { GroupResponseReader.read($0, now: now) } ?? GroupResult(transportFailure: "timeout")
        let (error, isRetryable) = (try expect.take("error"), try expect.take("retryable").flag())
        switch result.answer {
        case .success: #expect(error.isNull)
        case .failure(let failure):
            #expect(failure.kind.rawValue == (try error.text()))
            #expect(failure.isRetryable == isRetryable)
        }
        let reply = GroupReplyWriter.reply(to: result)
        #expect(reply.status == (try expect.take("status").integer()))
        #expect(reply.retryAfter.map(String.init) == (try expect.take("headers").headers()["retry-after"]))
        #expect(try expect.take("body").mismatches(in: VectorJSON(parsing: reply.body)) == [])
        try expect.finish()
    }

    @Test("The vectors are 35 requests, 13 responses and 4 scenarios")
    func completeness() throws {
        let counts = try ["request", "response", "scenario"]
            .map { try Vector.read("device-groups", where: "kind", is: $0).count }
        #expect(counts == [35, 13, 4])
    }
}

struct GroupRequestTests {
    private static func decode(_ body: String) throws -> GroupRequest {
        try GroupRequestDecoder.decode(ByteBuffer(string: body), contentType: "application/json; charset=utf-8")
    }

    @Test("Nulls and empty strings count as absent")
    func absent() throws {
        let request = try Self.decode(
            #"{"operation":"add","notification_key_name":"","notification_key":"k","registration_ids":["a"],"x":null}"#
        )
        #expect(request == .change(GroupChange(.add, name: nil, key: "k", tokens: ["a"])))
    }

    @Test(
        "An invalid request is refused without repeating its values",
        arguments: [
            #"{"operation":"create","notification_key_name":"a\u0000secret","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"secret\n","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["/topics/secret"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":[1,"secret"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["secret\#(String(repeating: "x", count: 4_096))"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["\#(Array(repeating: "secret", count: 101).joined(separator: #"",""#))"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":null}"#,
            #"{"operation":["secret"],"notification_key_name":"n","registration_ids":["r"]}"#,
            #"{"operation":"secret","notification_key_name":"n","registration_ids":["r"]}"#,
            #"["secret"]"#, "", "null", "{", #"{"operation":"create"}"#,
        ]
    )
    func refusals(body: String) throws {
        let refusal = try #require(throws: Refusal.self) { try Self.decode(body) }
        #expect(refusal.detail?.isEmpty == false)
        #expect(refusal.detail?.contains("secret") == false)
    }

    @Test(
        "A query is refused unless it names one group",
        arguments: [
            "notification_key_name=%", "notification_key_name=%zz", "notification_key_name=%ff",
            "Notification_key_name=a",
            "notification_key_name", "notification_key_name=%00", "notification_key_name=a&notification_key_name=",
        ]
    )
    func queries(query: String) {
        #expect(throws: Refusal.self) { try GroupRequestDecoder.decode(query: ByteBuffer(string: query)) }
    }

    @Test("Tokens are compared by bytes, and repeated ones are removed")
    func alike() throws {
        let request = try Self.decode(
            #"{"operation":"create","notification_key_name":"n","registration_ids":["\u00e9","e\u0301","\u00e9"]}"#
        )
        guard case .change(let change) = request else {
            Issue.record("\(request)")
            return
        }
        #expect(change.tokens.map { Array($0.utf8) } == [Array("\u{E9}".utf8), Array("e\u{301}".utf8)])
    }

    @Test("Other parameters of a query are not passed on")
    func otherParameters() throws {
        let request = try GroupRequestDecoder.decode(query: ByteBuffer(string: "key=x&notification_key_name=a&b=c"))
        #expect(GroupRequestEncoder.path(of: request) == "/fcm/notification?notification_key_name=a")
    }

    @Test("A look-up escapes every character that is not unreserved")
    func escapes() {
        let path = GroupRequestEncoder.path(of: .lookUp(name: "a b&c/é+%=?#~._-Z9"))
        #expect(path == "/fcm/notification?notification_key_name=a%20b%26c%2F%C3%A9%2B%25%3D%3F%23~._-Z9")
    }

    @Test(
        "An unreadable response is a protocol error",
        arguments: [
            (200, ""), (200, "{}"), (200, #"{"notification_key":""}"#), (200, #"{"notification_key":7}"#),
            (200, "<html>"), (200, #"{"notification_key":"\#(String(repeating: "k", count: 4_097))"}"#),
            (200, #"{"notification_key":"/topics/all"}"#), (200, #"{"notification_key":"a b"}"#),
            (200, #"{"notification_key":"a","notification_key":"b"}"#), (204, ""), (301, ""), (404, "<html>"),
            (410, ""),
        ]
    )
    func foreign(status: Int, body: String) {
        let result = GroupResponseReader.read(UpstreamResponse(status, body), now: 0)
        #expect(result.answer == .failure(GroupFailure(.upstreamProtocol)))
        #expect(result.upstreamCode == String(status))
    }

    @Test("FCM's error text is passed on shortened, and an HTML page is not")
    func words() throws {
        func text(_ body: String) throws -> String? {
            let result = GroupResponseReader.read(UpstreamResponse(400, body), now: 0)
            let failure = try #require(throws: GroupFailure.self) { try result.answer.get() }
            return failure.text
        }
        #expect(try text(String(repeating: "x", count: 9_000))?.count == 200)
        #expect(try text("<html>secret</html>") == "BadRequest")
        #expect(try text("") == "BadRequest")
        #expect(try text("one\ntwo") == "one")
        // One character that fills the response.
        let letter = "x" + String(repeating: "\u{301}", count: 9_000)
        #expect(try text(letter)?.unicodeScalars.count == 200)
        #expect(try text(#"{"error":"\#(letter)"}"#)?.unicodeScalars.count == 200)
    }
}
