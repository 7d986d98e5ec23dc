import Foundation
import Logging

extension LogConfiguration {
    /// Makes the logger of the whole process as configured.
    ///
    /// - Parameter level: the level in force, for one who changes it later.
    /// - Returns: the logger.
    func bootstrap(_ level: LogLevelSetting? = nil) -> Logger {
        let output = LogOutput(.standardError)
        let level = level ?? LogLevelSetting(self)
        let format = self.format
        LoggingSystem.bootstrap { label in
            switch format {
            case .json: AdjustableLogHandler(JSONLogHandler(label: label, output: output), level: level)
            case .text: AdjustableLogHandler(StreamLogHandler.standardError(label: label), level: level)
            }
        }
        return Logger(label: "fcm-gateway")
    }
}
