import Foundation
import GatewayCore
package import StrictJSON

extension StrictJSON.JSONValue {
    /// A member that is a string; `nil` for another or none.
    package func text(_ key: String) -> String? { self[key]?.string }

    /// A member that is a whole number; `nil` for another or none.
    package func integer(_ key: String) -> Int? { self[key]?.number?.integer }

    /// A member that is bytes in lower-case hexadecimal; `nil` for another or none.
    package func hex(_ key: String) -> [UInt8]? { self.text(key).flatMap { Hex.bytes($0) } }

    /// A member that is bytes in base64; `nil` for another or none.
    package func base64(_ key: String) -> [UInt8]? {
        self.text(key).flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) }
    }
}
