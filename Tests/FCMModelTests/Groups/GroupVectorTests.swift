import NIOCore
import StrictJSON
import Testing

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
                let reply = LegacyReply(refusingGroupRequest: refusal)
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

    @Test("Answers are understood and handed on as the vectors have it")
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
            let reply = LegacyReply(result)
            #expect(reply.status == vector.status, "\(vector.id)")
            #expect(reply.retryAfter.map(String.init) == vector.retryAfter, "\(vector.id)")
            let body = try VectorJSON(parsing: reply.body)
            #expect(vector.body.mismatches(in: body).isEmpty, "\(vector.id): \(body)")
        }
        #expect(count == 13)
    }
}
