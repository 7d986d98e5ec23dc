import Foundation
import NIOCore
import VectorTestKit

@testable import FCMEmulator

extension ValidationVector {
    var request: ReceivedRequest {
        let authorization: String? =
            switch self.auth {
            case "none": nil
            case "malformed": "something"
            case "unknown_key": "key=AAAA-unknown"
            default: "key=AAAA-known"
            }
        return ReceivedRequest(
            method: self.method ?? "POST",
            "/fcm/send",
            headers: [
                "Content-Type": self.headers["Content-Type"] ?? "application/json", "Authorization": authorization,
            ],
            body: Array(self.body.readableBytesView)
        )
    }
}

extension FormVector {
    var request: ReceivedRequest {
        let isUnauthorized = if case .unauthorized = self.expectation { true } else { false }
        return ReceivedRequest(
            "/fcm/send",
            headers: ["Content-Type": self.contentType, "Authorization": isUnauthorized ? nil : "key=AAAA-known"],
            body: Array(self.body.readableBytesView)
        )
    }
}

extension ReceivedRequest {
    /// Creates a request as an endpoint receives it; headers without a value are omitted.
    init(
        method: String = "POST",
        _ target: String,
        headers: KeyValuePairs<String, String?> = [:],
        body: [UInt8],
        at time: Date = Date(timeIntervalSince1970: 0)
    ) {
        let fields = headers.compactMap { name, value in value.map { HeaderField(name: name, value: $0) } }
        self.init(time: time, method: method, target: target, headers: fields, bodyBytes: body)
    }
}
