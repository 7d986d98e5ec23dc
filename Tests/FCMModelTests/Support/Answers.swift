import NIOCore
import Testing
import VectorTestKit

@testable import FCMModel

extension UpstreamResponse {
    /// Creates a response from a vector's members.
    init(_ members: inout VectorMembers) throws {
        let headers = try members.takeIfPresent("headers")?.headers() ?? [:]
        self.init(
            status: try members.take("status").integer(),
            retryAfter: headers["retry-after"],
            contentType: headers["content-type"],
            body: try members.take("body").body()
        )
    }
}

extension UpstreamResponse {
    init(_ status: Int, _ body: String, retryAfter: String? = nil, contentType: String? = nil) {
        let body = ByteBuffer(string: body)
        self.init(status: status, retryAfter: retryAfter, contentType: contentType, body: body)
    }
}

extension V1Reading {
    var rejection: Rejection? { if case .rejected(let rejection) = self.answer { rejection } else { nil } }
}

extension TopicReading {
    var rejection: Rejection? { if case .rejected(let rejection) = self.answer { rejection } else { nil } }
}

extension VectorJSON {
    /// Headers by lowercase name; refuses other headers, since the tests would not compare them.
    func headers() throws -> [String: String] {
        var headers: [String: String] = [:]
        var members = try self.members()
        for header in members.takeAll() {
            let name = header.key.lowercased()
            guard ["retry-after", "content-type"].contains(name), headers[name] == nil else {
                throw VectorProblem("unknown header \(name)")
            }
            headers[name] = try header.value.text()
        }
        return headers
    }
}
