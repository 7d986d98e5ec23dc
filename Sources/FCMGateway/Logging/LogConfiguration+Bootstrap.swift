import Foundation
import Logging

extension LogConfiguration {
    /// Makes the logger of the whole process as configured.
    func bootstrap() -> Logger {
        let output = LogOutput(.standardError)
        let level = Logger.Level(rawValue: self.level.rawValue) ?? .info
        let format = self.format
        LoggingSystem.bootstrap { label in
            switch format {
            case .json:
                var handler = JSONLogHandler(label: label, output: output)
                handler.logLevel = level
                return handler
            case .text:
                var handler = StreamLogHandler.standardError(label: label)
                handler.logLevel = level
                return handler
            }
        }
        return Logger(label: "fcm-gateway")
    }
}
