import NIOCore
import StrictJSON
import Testing
import VectorTestKit

@testable import FCMModel

struct GroupVectorTests {
    @Test("Requests are read, and written again, as the vectors have it")
    func requests() throws {
        var count = 0
        for case .request(let vector) in try GroupVector.all() where !vector.isRouteLevel {
            count += 1
            do {
                let request =
                    vector.method == "GET"
                    ? try GroupRequestDecoder.decode(query: ByteBuffer(string: vector.query ?? ""))
                    : try GroupRequestDecoder.decode(vector.body, contentType: vector.contentType)
                let upstream = try #require(vector.upstream, "\(vector.id) is not refused").members()
                self.compare(request, upstream, vector.id)
            } catch let refusal as Refusal {
                #expect(vector.upstream == nil, "\(vector.id): \(refusal)")
                let reply = GroupReplyWriter.reply(to: refusal)
                #expect(reply.status == vector.status, "\(vector.id)")
                if let expected = vector.replyBody {
                    let body = try VectorJSON(parsing: reply.body)
                    #expect(expected.mismatches(in: body).isEmpty, "\(vector.id): \(reply.body)")
                }
            }
        }
        #expect(count == 32)
    }

    private func compare(_ request: GroupRequest, _ upstream: VectorMembers, _ id: String) {
        var upstream = upstream
        do {
            let method = try upstream.take("method").text()
            let path = try upstream.take("path").text()
            _ = try upstream.take("headers")
            #expect(GroupRequestEncoder.path(of: request).prefix { $0 != "?" } == path, "\(id)")
            if let body = upstream.takeIfPresent("body") {
                #expect(method == "POST", "\(id)")
                let written = try VectorJSON(parsing: GroupRequestEncoder.body(of: request))
                #expect(body.mismatches(in: written).isEmpty, "\(id): \(written)")
            } else {
                var query = try upstream.take("query").members()
                let name = try query.take("notification_key_name").text()
                try query.finish()
                #expect(method == "GET", "\(id)")
                #expect(GroupRequestEncoder.body(of: request).readableBytes == 0, "\(id)")
                let written = GroupRequestEncoder.path(of: request).drop { $0 != "?" }.dropFirst()
                // Read back by the decoder: the escapes themselves are in a test of their own.
                #expect(
                    try GroupRequestDecoder.decode(query: ByteBuffer(string: String(written))) == .lookUp(name: name),
                    "\(id)"
                )
            }
            try upstream.finish()
        } catch {
            Issue.record("\(id): \(error)")
        }
    }

    @Test("Answers are understood and passed on as the vectors have it")
    func responses() throws {
        var count = 0
        for case .response(let vector) in try GroupVector.all() {
            count += 1
            let result =
                vector.answer.map { GroupResponseReader.read($0, now: vector.now) }
                ?? GroupResult(transportFailure: "timeout")
            switch result.answer {
            case .success: #expect(vector.error == nil, "\(vector.id)")
            case .failure(let failure):
                #expect(failure.kind.rawValue == vector.error, "\(vector.id)")
                #expect(failure.isRetryable == vector.isRetryable, "\(vector.id)")
            }
            let reply = GroupReplyWriter.reply(to: result)
            #expect(reply.status == vector.status, "\(vector.id)")
            #expect(reply.retryAfter.map(String.init) == vector.retryAfter, "\(vector.id)")
            let body = try VectorJSON(parsing: reply.body)
            #expect(vector.body.mismatches(in: body).isEmpty, "\(vector.id): \(body)")
        }
        #expect(count == 13)
    }
}

struct GroupRequestTests {
    private static func decode(_ body: String) throws -> GroupRequest {
        try GroupRequestDecoder.decode(ByteBuffer(string: body), contentType: "application/json; charset=utf-8")
    }

    @Test("Nulls and empty texts are as good as nothing")
    func absent() throws {
        let request = try Self.decode(
            #"{"operation":"add","notification_key_name":"","notification_key":"k","registration_ids":["a"],"x":null}"#
        )
        #expect(request == .change(GroupChange(.add, name: nil, key: "k", tokens: ["a"])))
    }

    @Test(
        "What no group can be made of is refused without repeating it",
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

    @Test("Tokens that only look alike are different devices")
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

    @Test("In a look-up everything is escaped that is not unreserved")
    func escapes() {
        let path = GroupRequestEncoder.path(of: .lookUp(name: "a b&c/é+%=?#~._-Z9"))
        #expect(path == "/fcm/notification?notification_key_name=a%20b%26c%2F%C3%A9%2B%25%3D%3F%23~._-Z9")
    }

    @Test(
        "An answer that can't be understood is never a group",
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

    @Test("FCM's own words are passed on cut, and pages not at all")
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
        // One character as long as the answer.
        let letter = "x" + String(repeating: "\u{301}", count: 9_000)
        #expect(try text(letter)?.unicodeScalars.count == 200)
        #expect(try text(#"{"error":"\#(letter)"}"#)?.unicodeScalars.count == 200)
    }
}
