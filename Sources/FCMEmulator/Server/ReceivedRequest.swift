import Foundation
import HTTPTypes

/// One request, complete with its body.
struct ReceivedRequest: Sendable {
    /// A body as text, and as Base64 if it is not UTF-8.
    struct Body: Sendable {
        let text: String
        let base64: String?

        init(_ bytes: [UInt8]) {
            if let text = String(validating: bytes, as: UTF8.self) {
                (self.text, self.base64) = (text, nil)
            } else {
                (self.text, self.base64) = (String(decoding: bytes, as: UTF8.self), Data(bytes).base64EncodedString())
            }
        }
    }

    /// The connection of the request; `nil` in tests without one.
    let origin: RequestOrigin?
    let time: Date
    let method: String
    let target: String
    let headers: [HeaderField]
    let bodyBytes: [UInt8]
    let body: Body

    /// The path without query.
    var path: String { String(self.target.prefix { $0 != "?" }) }

    init(
        origin: RequestOrigin? = nil,
        time: Date,
        method: String,
        target: String,
        headers: [HeaderField],
        bodyBytes: [UInt8]
    ) {
        self.origin = origin
        self.time = time
        self.method = method
        self.target = target
        self.headers = headers
        self.bodyBytes = bodyBytes
        self.body = Body(bodyBytes)
    }

    init(origin: RequestOrigin, time: Date, head: HTTPRequest, bodyBytes: [UInt8]) {
        // The server separates the Host field; it returns to its usual place.
        let host = head.authority.map { [HeaderField(name: "Host", value: $0)] } ?? []
        self.init(
            origin: origin,
            time: time,
            method: head.method.rawValue,
            target: head.path ?? "/",
            headers: host + head.headerFields.map { HeaderField(name: $0.name.rawName, value: $0.value) },
            bodyBytes: bodyBytes
        )
    }

    func header(_ name: String) -> String? {
        self.headers.first { $0.name.lowercased() == name }?.value
    }

    /// The recipients that a request seems to name, valid or not; used to match faults.
    var tokens: [String] {
        if let path = TopicRequestPath(self.path) { return path.tokens(body: self.bodyBytes) }
        guard V1Endpoint.project(in: self.path) == nil else { return self.v1Tokens }
        switch LegacyFormat(contentType: self.header("content-type")) {
        case .json:
            let members = (try? JSONValue.members(of: self.bodyBytes)) ?? [:]
            var values = [members["to"]].compactMap { $0 }
            if case .array(let entries)? = members["registration_ids"] { values += entries }
            return values.map(\.text)
        case .form:
            let fields = (try? FormFields.read(self.bodyBytes)) ?? []
            return fields.filter { $0.name == "registration_id" }.map(\.value)
        }
    }

    private var v1Tokens: [String] {
        guard let members = try? JSONValue.members(of: self.bodyBytes), case .object(let message)? = members["message"]
        else { return [] }
        return [message["token"], message["fid"]].compactMap { $0?.text }
    }
}

/// One HTTP header field, its name spelled as sent.
package struct HeaderField: Sendable, Equatable, Encodable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
